"""Bad input: whatever a user hands over is read as it is, or refused in one sentence that says where it is wrong."""
