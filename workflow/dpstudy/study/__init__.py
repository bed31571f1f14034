"""Studies: the config, the cells it unfolds into, and what made each of them. Light to import: no numpy, no torch."""
