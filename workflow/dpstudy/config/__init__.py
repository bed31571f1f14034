"""A study's config: loading it, checking it, and expanding it into cells."""
