"""Figure styles, one per module."""
