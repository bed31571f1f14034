"""A study's config: loaded, checked, unfolded into cells."""
