"""What tests share."""

import os

# Workers share the cores: two that each take all of them stall each other. Read when the libraries are loaded.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


def pytest_collection_modifyitems(items) -> None:
    """Whole workflows first: a file of them takes minutes, and the last one would keep a single worker busy."""
    items.sort(key=lambda item: item.path.parent.name not in ("workflow", "slurm"))
