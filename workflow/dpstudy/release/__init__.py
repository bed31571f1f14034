"""Releases: a bundle with a model and all it needs to predict, its ledger, and a plain-language privacy statement."""
