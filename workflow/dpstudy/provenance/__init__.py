"""Provenance of results: the code that made them, and hashes of that code and of the config."""
