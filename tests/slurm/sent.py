"""Snakemake at work, its jobs sent to the cluster of a test."""

import contextlib
import os
import signal
import subprocess

import pytest

from tests.slurm.cluster import missing
from tests.workflow.conftest import SNAKEMAKE

ASKED = os.environ.get("DPSTUDY_SLURM")  # "short": of CI, which has no time for more
WHY_NOT = None if ASKED else "run by `make test-slurm` alone"
if ASKED == "short":  # where all was asked for, what is missing is an error
    WHY_NOT = missing()
SHORT_MARK = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
MARK = pytest.mark.skipif(WHY_NOT is not None or ASKED == "short", reason=str(WHY_NOT or "CI runs test_short.py alone"))
# What a user would write into the profile. The last flag takes one value, so that targets may follow.
PROFILE = [
    *("--workflow-profile", "profiles/slurm", "--default-resources", "slurm_partition=cpu", "runtime=10"),
    *("--slurm-init-seconds-before-status-checks", "2", "--slurm-status-command", "squeue", "--latency-wait", "5"),
    *("--seconds-between-status-checks", "2", "--local-cores", "1", "--jobs", "4"),
]
PATIENCE_SECONDS = 400


@contextlib.contextmanager
def begun(study, *arguments):
    """Snakemake at work; a test that fails leaves none behind."""
    with open(study.path / "out", "w") as out:
        process = subprocess.Popen(
            [SNAKEMAKE, *PROFILE, *arguments],
            cwd=study.path,
            env=study.environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            # a background shell passes on that SIGINT is ignored
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ends(study, process):
    """Wait; (exit status, what was said)."""
    process.wait(timeout=PATIENCE_SECONDS)
    return process.returncode, (study.path / "out").read_text()


def through(study, *arguments):
    with begun(study, *arguments) as process:
        return ends(study, process)


def works(study, *arguments):
    status, said = through(study, *arguments)
    assert status == 0, said
    return said


def numbers(cluster):
    return {number for number, *_ in cluster.queue()}
