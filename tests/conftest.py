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


# Whose tests are slow, but for these files.
FOLDERS = ("workflow", "slurm", "mutants", "fuzz", "attacks", "studies", "claims")
QUICK = ("test_reruns.py", "test_tiny.py", "test_status.py")


def pytest_collection_modifyitems(items) -> None:
    """Mark slow tests, and put them in order."""
    for item in items:
        if item.path.parent.name in FOLDERS and item.path.name not in QUICK:
            item.add_marker("slow")
    items.sort(key=_place)


def _place(item) -> int:
    """Whole workflows first: a file of them takes minutes, and the last would keep one worker busy. Of the quick ones
    the first alone: the others would wait for the study that it makes for all."""
    if item.path.parent.name in ("workflow", "slurm"):
        return 2 if item.path.name in QUICK[1:] else 0
    return 1 if "scenarios" in item.path.parts else 3
