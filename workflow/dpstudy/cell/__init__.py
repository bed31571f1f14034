"""What a cell is given and what it writes, and what binds its files together."""
