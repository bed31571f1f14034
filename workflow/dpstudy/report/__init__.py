"""The report: one HTML file that opens from disk, with what a study found, what it guarantees, and how it was made."""
