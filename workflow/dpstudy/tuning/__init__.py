"""Hyper-parameter searches on a validation split: spaces, history, and the best trial."""
