"""Layouts of tables, one a file."""
