"""Models: what training produces and prediction needs."""
