"""Evaluation of models: metrics on a public test split, statistics over seeds, and a study's summary."""
