"""Tables, figures and the report: built from cells, and set beside the published numbers."""
