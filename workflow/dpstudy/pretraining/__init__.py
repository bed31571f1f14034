"""Training networks on public images, before any private record is touched."""
