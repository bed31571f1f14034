"""What made a result: the code that it ran on, and hashes of that and of its config."""
