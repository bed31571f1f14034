"""Privacy: events, accounting, calibration, noise and the ledger. Knows no images and no other room."""
