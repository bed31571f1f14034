"""What may leave the machine: a model with all it needs to predict, its ledger, and a statement in plain words."""
