"""Differential privacy: events, accounting, calibration, noise and the ledger; it imports nothing about images."""
