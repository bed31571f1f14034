"""Results measured with this repository, recorded from results folders and set beside the papers' numbers."""
