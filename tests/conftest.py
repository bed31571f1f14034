"""What tests share."""

import os
import sys
from pathlib import Path

# The library of this clone is tested, by other processes too, whatever clone the environment's editable link names.
WORKFLOW = str(Path(__file__).resolve().parents[1] / "workflow")
sys.path.insert(0, WORKFLOW)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (WORKFLOW, os.environ.get("PYTHONPATH"))))

# Workers share the cores: two that each take all of them stall each other. Read when the libraries are loaded.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


def pytest_collection_modifyitems(items) -> None:
    """Whole workflows first: a file of them takes minutes, and the last one would keep a single worker busy."""
    items.sort(key=lambda item: item.path.parent.name not in ("workflow", "slurm"))
