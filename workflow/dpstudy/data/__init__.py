"""Images and labels: readers of the usual formats, splits by hash, and shards with a manifest."""
