"""A study that is killed again and again ends with the same bytes as one that is left in peace."""

import copy
import os
import random
import signal
import subprocess
import time

import numpy as np
import pytest

from dpstudy.core.files import read_tensor_metadata, read_tensors, write_tensors
from tests.workflow.conftest import SNAKEMAKE, TINY, make_folder
from tests.workflow.kills import (
    Run,
    as_measured,
    kill_inside,
    results_of,
    temporary_files,
    work_seconds,
)

# Of every sort: many jobs and one, short and long, with several outputs, with a checkpoint, and the last.
# test_every_rule.py has all of them.
KILLED = ("prepare_shard", "pretrain_backbone", "extract_shard", "train_stepped", "build_report")
KILLS = 4
LONG = 100_000  # epochs
MODEL = "results/backbones/cnn/model.safetensors"  # as far as a study need go that was stopped before it


@pytest.fixture(autouse=True)
def no_survivors():
    """End what a failed test leaves running."""
    yield
    for run in Run.started:
        if run.alive():
            run.kill_all()
    Run.started.clear()


def test_a_study_killed_inside_many_kinds_of_rule_ends_with_the_same_bytes(finished, tmp_path, capsys):
    study = make_folder(tmp_path / "study")
    chance = random.Random(2)
    killed = []
    for number, rule in enumerate(KILLED):
        longest = min(0.5, work_seconds(finished, rule))
        delays = iter([chance.uniform(0, longest), chance.uniform(0, longest / 4), 0.0, 0.0])
        attempts = 0
        while not kill_inside(study, rule, delays, ("snakemake", "everything", "job")[number % 3]):
            attempts += 1
            if attempts == 4:
                break
        else:
            killed.append(rule)
    last = Run(study)
    assert last.wait() == 0, last.said()
    with capsys.disabled():
        print(f"\nkilled inside {len(killed)} of {len(KILLED)} kinds of rule: {', '.join(killed)}")
    assert len(killed) >= KILLS
    assert temporary_files(study) == []
    idle = Run(study)
    assert idle.wait() == 0
    assert "Nothing to be done" in idle.said()
    expected, found = as_measured(results_of(finished)), as_measured(results_of(study))
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] != expected[name]] == []


def test_tensors_and_metadata_always_give_the_same_bytes(tmp_path):
    tensors = {"b": np.arange(6.0).reshape(2, 3), "a": np.float32([1, 2])}
    metadata = {name: name.upper() for name in "qwerty"}
    files = set()
    for _ in range(20):
        write_tensors(tmp_path / "t.safetensors", tensors, metadata)
        files.add((tmp_path / "t.safetensors").read_bytes())
    assert len(files) == 1
    assert read_tensor_metadata(tmp_path / "t.safetensors") == metadata
    found = read_tensors(tmp_path / "t.safetensors")
    assert found.keys() == tensors.keys()
    assert all(np.array_equal(found[name], tensors[name]) for name in tensors)


@pytest.fixture
def endless(study):
    """The finished tiny study with a pre-training that would take for ever."""
    config = copy.deepcopy(TINY)
    config["backbones"]["cnn"]["epochs"] = LONG
    study.write_config(config)
    return study


def test_a_living_run_is_never_disturbed_and_its_jobs_die_with_it(endless):
    first = Run(endless)
    time.sleep(0.3)  # before Snakemake has made its own lock
    refused = [Run(endless)]
    assert first.wait_for("pretrain_backbone")
    locks = sorted(os.listdir(endless.path / ".snakemake" / "locks"))
    refused.append(Run(endless))
    for run in refused:
        assert run.wait(60) == 1
        assert run.said().count("\n") == 1
        assert run.said().startswith("dpstudy: this folder is in use by ")
        assert f"process {first.process.pid}" in run.said()
    assert sorted(os.listdir(endless.path / ".snakemake" / "locks")) == locks
    assert len(first.alive()) >= 3  # run.py, Snakemake, the job
    first.kill_snakemake()
    killed = time.monotonic()
    while first.alive():
        assert time.monotonic() < killed + 3, first.alive()
        time.sleep(0.05)
    endless.write_config(TINY)
    last = Run(endless, MODEL)
    assert last.wait() == 0, last.said()
    assert "clearing the lock of a run that died" in last.said()


def test_a_plain_snakemake_that_is_alive_is_not_unlocked(endless):
    plain = subprocess.Popen(
        [SNAKEMAKE, "--cores", "2"],
        cwd=endless.path,
        env=endless.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not list((endless.path / ".snakemake").glob("locks/*")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        run = Run(endless)
        assert run.wait(60) == 1
        assert run.said() == (
            f"dpstudy: this folder is in use by process {plain.pid}; wait for it, or stop it, then try again\n"
        )
        assert list((endless.path / ".snakemake").glob("locks/*"))
    finally:
        os.killpg(plain.pid, signal.SIGKILL)
        plain.wait()


def test_the_lock_of_another_machine_is_not_cleared(study):
    locks = study.path / ".snakemake" / "locks"
    locks.mkdir(exist_ok=True)
    (locks / "0.output.lock").write_text("results/summary.csv\n")
    (study.path / ".snakemake" / "dpstudy-run").write_text("elsewhere 12\n")
    run = Run(study)
    assert run.wait(60) == 1
    assert run.said().count("\n") == 1
    assert "'elsewhere'" in run.said()
    assert locks.exists()


def test_an_interrupted_run_cleans_up_and_continues(endless):
    run = Run(endless)
    assert run.wait_for("pretrain_backbone")
    os.killpg(run.process.pid, signal.SIGINT)  # what Ctrl-C in a terminal does
    assert run.wait(60) != 0
    assert "Traceback" not in run.said()
    assert not (endless.path / ".snakemake" / "locks").exists()
    assert temporary_files(endless) == []
    endless.write_config(TINY)
    again = Run(endless, MODEL)
    assert again.wait() == 0, again.said()
    assert "clearing the lock" not in again.said()
