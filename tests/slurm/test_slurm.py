"""A tiny study through a real SLURM of one node: `make test-slurm`. Whatever breaks, a rerun completes it, and nothing
that was finished is made again."""

import copy
import os
import shutil
import signal
import subprocess
import time

import pytest

from tests.slurm.cluster import missing, running
from tests.workflow.conftest import SNAKEMAKE, TINY, make_folder

WHY_NOT = missing() if os.environ.get("DPSTUDY_SLURM") else "run by `make test-slurm` alone"
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))

PROFILE = [
    *("--workflow-profile", "profiles/slurm", "--jobs", "4", "--latency-wait", "5"),
    *("--slurm-init-seconds-before-status-checks", "2", "--slurm-status-command", "squeue"),
    *("--default-resources", "slurm_partition=cpu", "runtime=10"),
]
STUDY = {key: copy.deepcopy(TINY[key]) for key in ("study", "datasets", "methods", "epsilons", "tables")} | {
    "features": {"pixels": {"extractor": "pixels"}},
    "seeds": [0],
}
STUDY["datasets"]["digits"]["shards"] = 1
CELLS = [f"results/cells/digits/pixels/{entry}/eps={epsilon}" for entry in ("ls", "sgd") for epsilon in ("1", "inf")]
TARGETS = ["results/tables/tiny.csv", "results/privacy/total.json"]
SLOW = "results/cells/digits/pixels/sgd/eps=1"


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


def start(study, *arguments):
    command = [SNAKEMAKE, *PROFILE, *arguments]
    return subprocess.Popen(
        command, cwd=study.path, env=study.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def through(study, *arguments):
    process = start(study, *arguments)
    output, _ = process.communicate(timeout=400)
    return subprocess.CompletedProcess(process.args, process.returncode, output, output)


def made(study):
    """When each file of a cell was written."""
    return {path: path.stat().st_mtime_ns for path in (study.path / "results" / "cells").rglob("*") if path.is_file()}


def forget(study, *cells):
    """Take cells away, and what follows from them."""
    for cell in cells:
        shutil.rmtree(study.path / cell)
    return made(study)


def until(cluster, before, state):
    """Wait for a job in that state that was not in the queue before; its number."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for number, found, _ in cluster.queue():
            if number not in before and found == state:
                return number
        time.sleep(0.1)
    raise TimeoutError(f"no job became {state}: {cluster.queue()}")


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


def test_a_failing_job_leaves_the_others_be(cluster, study, local):
    kept = forget(study, CELLS[0])
    wrong = copy.deepcopy(STUDY)
    wrong["methods"]["wrong"] = STUDY["methods"]["sgd"] | {"learning_rate": 1e38}
    study.write_config(wrong)
    cells = [CELLS[0], "results/cells/digits/pixels/wrong/eps=1"]
    result = through(study, "--keep-going", "--retries", "0", "--", *(f"{cell}/metrics.json" for cell in cells))
    assert result.returncode
    assert "diverged" in (study.path / "results/logs/train_stepped/digits/pixels/wrong/eps=1.log").read_text()
    assert [(study.path / cell / "metrics.json").exists() for cell in cells] == [True, False]
    study.write_config(STUDY)
    result = through(study, *TARGETS)
    assert result.returncode == 0, result.stderr
    complete(study, local, kept)


@pytest.mark.parametrize("daemon", ["slurmctld", "slurmd"])
def test_a_daemon_that_dies_and_comes_back(cluster, study, local, daemon):
    kept, before = forget(study, SLOW), numbers(cluster)
    process = start(study, *TARGETS)
    until(cluster, before, "RUNNING")
    cluster.kill(daemon)
    time.sleep(3)
    cluster.start_controller() if daemon == "slurmctld" else cluster.start_node()
    cluster.wait("")
    output, _ = process.communicate(timeout=400)
    if process.returncode:
        result = through(study, *TARGETS)
        assert result.returncode == 0, output + result.stderr
    complete(study, local, kept)


def test_a_node_that_goes_down_and_comes_back(cluster, study, local):
    kept, before = forget(study, SLOW), numbers(cluster)
    process = start(study, *TARGETS)
    until(cluster, before, "RUNNING")
    cluster.ask("scontrol", "update", f"nodename={cluster.host}", "state=down", "reason=test")
    time.sleep(3)
    cluster.ask("scontrol", "update", f"nodename={cluster.host}", "state=resume")
    output, _ = process.communicate(timeout=400)
    if process.returncode:
        result = through(study, *TARGETS)
        assert result.returncode == 0, output + result.stderr
    complete(study, local, kept)


def test_a_cancelled_run_goes_on_where_it_was(cluster, study, local):
    kept, before = forget(study, *CELLS[2:]), numbers(cluster)
    process = start(study, *TARGETS)
    number = until(cluster, before, "RUNNING")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode
    states = {found: state for found, state, _ in cluster.queue()}
    assert states[number] in ("CANCELLED", "COMPLETED", "FAILED")
    result = through(study, *TARGETS)
    assert result.returncode == 0, result.stderr
    complete(study, local, kept)
