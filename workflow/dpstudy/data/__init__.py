"""Images and labels: readers of the usual formats, splits by hash, and shards listed in a manifest."""
