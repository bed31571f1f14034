"""Table styles, one per module."""
