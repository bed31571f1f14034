"""What this repository has measured, as data: recorded from results folders, and read beside the papers' numbers."""
