"""Forecasts of a private model's accuracy before any budget is spent, from learning curves on public images."""
