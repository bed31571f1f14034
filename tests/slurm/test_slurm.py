"""A tiny study through a real SLURM of one node: `make test-slurm`."""

import copy
import os
import shutil
import subprocess

import pytest

from tests.slurm.cluster import missing, running
from tests.workflow.conftest import SNAKEMAKE, TINY, make_folder

WHY_NOT = missing() if os.environ.get("DPSTUDY_SLURM") else "run by `make test-slurm` alone"
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))

PROFILE = [  # the last flag takes one value, so that targets may follow
    *("--workflow-profile", "profiles/slurm", "--default-resources", "slurm_partition=cpu", "runtime=10"),
    *("--slurm-init-seconds-before-status-checks", "2", "--slurm-status-command", "squeue", "--latency-wait", "5"),
    *("--jobs", "4"),
]
STUDY = {key: copy.deepcopy(TINY[key]) for key in ("study", "datasets", "methods", "epsilons", "tables")} | {
    "features": {"pixels": {"extractor": "pixels"}},
    "seeds": [0],
}
STUDY["datasets"]["digits"]["shards"] = 1
CELLS = [f"results/cells/digits/pixels/{entry}/eps={epsilon}" for entry in ("ls", "sgd") for epsilon in ("1", "inf")]
TARGETS = ["results/tables/tiny.csv", "results/privacy/total.json"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("slurm")) as found:
        yield found


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    study = make_folder(tmp_path_factory.mktemp("local") / "study")
    study.write_config(STUDY)
    result = study.snakemake(*TARGETS)
    assert result.returncode == 0, result.stderr
    return study


@pytest.fixture(scope="module")
def study(cluster, tmp_path_factory):
    """The study, run through the cluster."""
    study = make_folder(tmp_path_factory.mktemp("remote") / "study")
    study.write_config(STUDY)
    result = through(study, *TARGETS)
    assert result.returncode == 0, result.stderr
    return study


def through(study, *arguments):
    command = [SNAKEMAKE, *PROFILE, *arguments]
    return subprocess.run(command, cwd=study.path, env=study.environment, capture_output=True, text=True, timeout=600)


def made(study):
    """When each file of a cell was written."""
    return {path: path.stat().st_mtime_ns for path in (study.path / "results" / "cells").rglob("*") if path.is_file()}


def forget(study, *cells):
    """Take cells away, and what follows from them."""
    for cell in cells:
        shutil.rmtree(study.path / cell, ignore_errors=True)
    for target in TARGETS:  # else Snakemake would not miss the cells
        (study.path / target).unlink(missing_ok=True)
    return made(study)


def numbers(cluster):
    return {number for number, *_ in cluster.queue()}


def complete(study, local, kept):
    """The study is what a local run makes, and what was finished before was not made again."""
    for cell in CELLS:
        for name in ("ledger.json", "model.safetensors"):
            assert (study.path / cell / name).read_bytes() == (local.path / cell / name).read_bytes()
    for target in TARGETS:
        assert (study.path / target).read_bytes() == (local.path / target).read_bytes()
    now = made(study)
    assert {path: now[path] for path in kept} == kept


def test_every_job_goes_through_the_queue_and_makes_what_a_local_run_makes(cluster, study, local):
    rules = [comment for _, state, comment in cluster.queue() if state == "COMPLETED"]
    for rule in ("prepare_shard", "extract_shard", "sum_statistics", "train_closed_form", "train_stepped"):
        assert any(f"rule_{rule}_" in comment for comment in rules), rules
    complete(study, local, made(study))
    result = through(study, *TARGETS)
    assert result.returncode == 0 and "Nothing to be done" in result.stderr


def test_a_job_over_its_memory_is_sent_again_with_more(cluster, study, local):
    kept, before = forget(study, CELLS[0]), numbers(cluster)
    limits = "train_closed_form:mem_mb=20 * 100 ** (attempt - 1)"
    result = through(study, "--set-resources", limits, "--", *TARGETS)
    assert result.returncode == 0, result.stderr
    states = [state for number, state, comment in cluster.queue() if number not in before and "train_" in comment]
    assert sorted(states)[0] == "COMPLETED" and len(states) == 2, states
    complete(study, local, kept)
