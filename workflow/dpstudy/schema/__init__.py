"""Schemas of configs and documents: reading them, filling in defaults, validation, and error messages."""
