"""The inputs and outputs of a cell's training, and the checksums that tie its files together."""
