"""The display of `make study`: a short view of the running study, and at the end the errors that stopped it."""
