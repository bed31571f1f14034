"""De-duplication: which public images are copies of private ones, and which side of a match is dropped."""
