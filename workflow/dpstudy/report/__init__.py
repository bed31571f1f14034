"""The report: one HTML file with a study's results and guarantees, and how they were made."""
