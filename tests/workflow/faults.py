"""Making a study fail and work again: one sentence, nothing half-written, and small disks."""

import contextlib
import copy
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.conftest import StudyFolder
from tests.workflow.kills import temporary_files

DIGITS_SHARD = "results/data/digits/train/part-00000.parquet"


def with_value(config: dict, place: str, value: object) -> dict:
    """A copy of a config with another value at a dotted place."""
    changed = copy.deepcopy(config)
    node = changed
    *parents, last = place.split(".")
    for part in parents:
        node = node[part]
    node[last] = value
    return changed


def sentences(result: subprocess.CompletedProcess) -> list[str]:
    """What the jobs said to the user."""
    return [line for line in result.stderr.splitlines() if line.startswith("dpstudy: ")]


def fails(study: StudyFolder, target: str, *expected: str) -> None:
    """Making the target fails with one sentence that has all these parts, and leaves nothing half-written."""
    result = study.snakemake(target)
    assert result.returncode != 0
    (sentence,) = sentences(result)
    for part in expected:
        assert part in sentence
    assert "Traceback" not in result.stderr
    assert not (study.path / target).exists()
    assert temporary_files(study) == []


def works(study: StudyFolder, target: str) -> None:
    result = study.snakemake(target)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (study.path / target).exists()


def make_study(study: StudyFolder, *arguments: str) -> subprocess.CompletedProcess:
    """What `make study` does."""
    command = [sys.executable, "workflow/run.py", "--cores", "2", *arguments]
    return subprocess.run(command, cwd=study.path, env=study.environment, capture_output=True, text=True)


def mount(*options: str) -> bool:
    return subprocess.run(["mount", *options], capture_output=True).returncode == 0


@contextlib.contextmanager
def small_disk(folder: Path, size: str):
    """A file system of that size at `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() or not mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)):
        pytest.skip("a small disk takes root and mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
