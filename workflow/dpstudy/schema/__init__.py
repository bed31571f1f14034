"""The schemas of configs and documents: read, filled in, held against, and said to a person."""
