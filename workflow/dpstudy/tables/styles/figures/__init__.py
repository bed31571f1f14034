"""Kinds of figures, one a file."""
