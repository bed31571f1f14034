"""Tables and figures of a study's cells, beside the papers' published numbers."""
