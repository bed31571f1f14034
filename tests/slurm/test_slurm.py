"""A tiny study through a real SLURM of one node: `make test-slurm`. Whatever breaks, a rerun completes it, and nothing
that was finished is made again."""

import copy
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.slurm.sent import MARK, PATIENCE_SECONDS, PROFILE, begun, ends, numbers, through, works
from tests.workflow.conftest import TINY, make_folder

pytestmark = MARK

STUDY = {key: copy.deepcopy(TINY[key]) for key in ("study", "datasets", "methods", "epsilons", "tables")} | {
    "features": {"pixels": {"extractor": "pixels"}},
    "seeds": [0],
}
STUDY["datasets"]["digits"]["shards"] = 1
SGD = STUDY["methods"]["sgd"] = STUDY["methods"]["sgd"] | {"steps": 30_000, "learning_rate": 0.01}  # some ten seconds
CELLS = [f"results/cells/digits/pixels/{entry}/eps={epsilon}" for entry in ("ls", "sgd") for epsilon in ("1", "inf")]
TARGETS = ["results/tables/tiny.csv", "results/privacy/total.json"]
SHARD = "results/features/digits/pixels/train/part-00000.parquet"
SLOW = "results/cells/digits/pixels/sgd/eps=1"


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
    works(study, *TARGETS)
    return study


def run_py(study):
    """What `make study` would run, with the profile."""
    command = [sys.executable, "workflow/run.py", *PROFILE, "--", *TARGETS]
    return subprocess.run(
        command, cwd=study.path, env=study.environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )


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


def until(cluster, before, state, rule=""):
    """Wait for a job in that state that was not in the queue before; its number."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for number, found, comment in cluster.queue():
            if number not in before and found == state and rule in comment:
                return number
        time.sleep(0.1)
    raise TimeoutError(f"no job became {state}: {cluster.queue()}")


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
    assert "Nothing to be done" in works(study, *TARGETS)


def test_a_controller_in_the_cluster_runs_short_jobs_itself(cluster, study, local):
    before = numbers(cluster)
    forget(study, *CELLS[:2])
    for shard in (study.path / "results/features").rglob("train/part-*"):  # a longer job among what is due
        shard.unlink()
    command = ["sbatch", "--parsable", "--wait", "--cpus-per-task=1", "--mem=2500", "--output=out"]
    command += ["--partition=cpu", "profiles/slurm/controller.sh", *PROFILE[2:], "--", SHARD, *TARGETS]
    environment = study.environment | {"DPSTUDY_PYTHON": sys.executable}
    done = subprocess.run(
        command, cwd=study.path, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    said = (study.path / "out").read_text()
    assert done.returncode == 0, done.stderr + said
    jobs = [comment for number, _, comment in cluster.queue() if number not in before]
    assert any("extract_shard" in comment for comment in jobs), jobs
    assert all("extract_shard" in comment or "sum_statistics" in comment for comment in jobs[1:]), jobs  # after itself
    complete(study, local, {})


def test_a_job_over_its_memory_is_sent_again_with_more(cluster, study, local):
    kept, before = forget(study, CELLS[2]), numbers(cluster)
    limits = "train_stepped:mem_mb=20 * 100 ** (attempt - 1)"
    works(study, "--set-resources", limits, "--", *TARGETS)
    states = [state for number, state, comment in cluster.queue() if number not in before and "train_" in comment]
    assert sorted(states)[0] == "COMPLETED" and len(states) == 2, states
    complete(study, local, kept)


def test_a_job_over_its_time_is_sent_again_with_more(cluster, study, local):
    kept, before = forget(study, CELLS[2]), numbers(cluster)
    slow = study.path / "workflow/scripts/train_cell.py"  # its first attempt takes longer than a minute
    original = slow.read_text()
    slow.write_text(
        "import os, time\nif not os.path.exists('slept'):\n    os.mkdir('slept')\n    time.sleep(600)\n" + original
    )
    try:
        status, said = through(study, "--set-resources", "train_stepped:runtime=attempt", "--", f"{SLOW}/metrics.json")
    finally:
        slow.write_text(original)
    assert status == 0, said
    states = [state for number, state, comment in cluster.queue() if number not in before and "train_" in comment]
    assert sorted(states) == ["COMPLETED", "TIMEOUT"], states
    works(study, *TARGETS)
    complete(study, local, kept)


def test_a_failing_job_leaves_the_others_be(cluster, study, local):
    kept = forget(study, CELLS[0])
    wrong = copy.deepcopy(STUDY)
    wrong["methods"]["wrong"] = SGD | {
        "normalisation": {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 0.01}
    }
    study.write_config(wrong)
    cells = [CELLS[0], "results/cells/digits/pixels/wrong/eps=1"]
    status, said = through(study, "--keep-going", "--retries", "0", "--", *(f"{cell}/metrics.json" for cell in cells))
    assert status, said
    assert "cannot be reached" in (study.path / "results/logs/train_stepped/digits/pixels/wrong/eps=1.log").read_text()
    assert [(study.path / cell / "metrics.json").exists() for cell in cells] == [True, False], said
    study.write_config(STUDY)
    works(study, *TARGETS)
    complete(study, local, kept)


@pytest.mark.parametrize("daemon", ["slurmctld", "slurmd"])
def test_a_daemon_that_dies_and_comes_back(cluster, study, local, daemon):
    kept, before = forget(study, SLOW), numbers(cluster)
    with begun(study, *TARGETS) as process:
        until(cluster, before, "RUNNING")
        time.sleep(6)  # well under way
        cluster.kill(daemon)
        time.sleep(5)
        cluster.start_controller() if daemon == "slurmctld" else cluster.start_node()
        cluster.wait("")
        status, said = ends(study, process)
    assert status == 0, said
    complete(study, local, kept)


def test_a_node_that_goes_down_and_comes_back(cluster, study, local):
    kept, before = forget(study, SLOW), numbers(cluster)
    with begun(study, *TARGETS) as process:
        until(cluster, before, "RUNNING")
        cluster.ask("scontrol", "update", f"nodename={cluster.host}", "state=down", "reason=test")
        time.sleep(3)
        cluster.ask("scontrol", "update", f"nodename={cluster.host}", "state=resume")
        status, said = ends(study, process)
    assert status == 0, said
    complete(study, local, kept)


def test_a_cancelled_run_goes_on_where_it_was(cluster, study, local):
    kept, before = forget(study, *CELLS[2:]), numbers(cluster)
    with begun(study, *TARGETS) as process:
        number = until(cluster, before, "RUNNING")
        process.send_signal(signal.SIGINT)
        status, said = ends(study, process)
    assert status, said
    states = {found: state for found, state, _ in cluster.queue()}
    assert states[number] in ("CANCELLED", "COMPLETED", "FAILED")
    works(study, *TARGETS)
    complete(study, local, kept)


def test_a_killed_run_goes_on_where_it_was(cluster, study, local):
    kept, before = forget(study, *CELLS[2:]), numbers(cluster)
    with begun(study, *TARGETS) as process:
        number = until(cluster, before, "RUNNING")
        process.kill()
    done = run_py(study)
    assert done.returncode == 0 and "clearing the lock" in done.stdout, done.stdout + done.stderr
    assert "waiting for jobs that an earlier run left" in done.stdout and number in done.stdout, done.stdout
    complete(study, local, kept)
