"""What can be expected of a private model before anything is spent: curves of public images, and what they say."""
