"""Type hints hold together."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow  # `make lint` does it too
def test_mypy_finds_nothing(tmp_path):
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "--no-error-summary"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout + found.stderr
