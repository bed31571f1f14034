"""Whether a paper's claims hold: on the numbers that it prints, and on the cells of a study."""
