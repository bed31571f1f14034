"""Comparison of two results folders, cell by cell."""
