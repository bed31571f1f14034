"""How good a model is: metrics on a public test split, their statistics over seeds, the summary of a study."""
