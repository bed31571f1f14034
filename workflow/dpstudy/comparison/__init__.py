"""What changed between two result trees, cell by cell."""
