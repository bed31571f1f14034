"""Speed measurements: `make bench`, or `python -m benchmarks NAME ...`. Each prints a table; none is a test."""

import os
import sys
from pathlib import Path

# The library beside this folder, here and in processes of their own, whatever clone the environment's link names.
_OWN = [str(Path(__file__).resolve().parents[1] / "workflow"), str(Path(__file__).resolve().parents[1])]
sys.path[:0] = _OWN
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*_OWN, os.environ.get("PYTHONPATH")]))
