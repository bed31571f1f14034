"""De-duplication: finding public images that are copies of private ones, and dropping one side of each match."""
