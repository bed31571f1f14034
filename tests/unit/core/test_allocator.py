"""Freed memory is used again instead of being fetched page by page."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import resource, sys
import numpy as np
from dpstudy.core.allocator import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
def work():
    for _ in range(20):
        arrays = [np.ones(6_000_000) for _ in range(3)]  # 48 MB each
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    environment = {"PYTHONPATH": str(Path(__file__).parents[3] / "workflow"), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, env=environment, check=True
    )
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc alone knows how")
def test_the_same_memory_serves_again():
    assert faults("kept") < 0.05 * faults("as a rule")
