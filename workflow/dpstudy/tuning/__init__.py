"""Searches for hyper-parameters on a validation split: spaces, their history, and the trial that won."""
