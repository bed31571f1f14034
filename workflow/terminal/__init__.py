"""What `make study` shows: one quiet view of a study that runs, and what went wrong at the end."""
