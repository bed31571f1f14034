"""Snakemake dies while its jobs go on in the queue: the same command, given again, waits for them and keeps what they
made, with noise of either kind. `make test-slurm`."""

import contextlib
import copy
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from dpstudy.core.files import sha256
from dpstudy.privacy.spending import BOOK, Spending
from tests.slurm.sent import MARK, PATIENCE_SECONDS, PROFILE, numbers
from tests.slurm.test_slurm import STUDY, TARGETS, made, until
from tests.workflow.conftest import make_folder

pytestmark = MARK
CONFIG = copy.deepcopy(STUDY) | {"epsilons": ["1", "2"]}
CELLS = sorted(f"digits/pixels/{entry}/eps={epsilon}" for entry in ("ls", "sgd") for epsilon in ("1", "2"))
KILLS = 5


@contextlib.contextmanager
def at_work(study, name="out"):
    """What `make study` would run, with the profile; (process, what it said so far). It is killed at the end."""
    with open(study.path / name, "w") as out:
        process = subprocess.Popen(
            [sys.executable, "workflow/run.py", *PROFILE, "--", *TARGETS],
            cwd=study.path,
            env=study.environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process, (study.path / name).read_text
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def completes(study):
    with at_work(study) as (process, said):
        assert process.wait(PATIENCE_SECONDS) == 0, said()
        return said()


def paid_once(study):
    """The book has each training once, and each cell what its line says."""
    lines = list(Spending(study.path / BOOK).entries())
    assert [line["cell"] for line in sorted(lines, key=lambda line: line["cell"])] == CELLS
    for line in lines:
        folder = study.path / "results/cells" / line["cell"]
        assert {name: sha256(folder / name) for name in line["files"]} == line["files"]


@pytest.mark.parametrize("noise", ["secure", "seeded"])
def test_what_jobs_make_after_their_run_died_is_kept(cluster, tmp_path, noise):
    study, before = make_folder(tmp_path / "study"), numbers(cluster)
    study.write_config(CONFIG | {"noise": noise})
    with at_work(study) as (_, said):
        until(cluster, before, "RUNNING", "rule_train_stepped_")
        time.sleep(4)
    cells, deadline = study.path / "results/cells/digits/pixels/sgd", time.monotonic() + PATIENCE_SECONDS
    while any(state in ("RUNNING", "PENDING", "COMPLETING") for _, state, _ in cluster.queue()):
        assert time.monotonic() < deadline, cluster.queue()
        time.sleep(1)
    kept, jobs = {path: when for path, when in made(study).items() if cells in path.parents}, numbers(cluster)
    assert any(path.name == "run.json" for path in kept), said()
    completes(study)
    assert {path: made(study)[path] for path in kept} == kept
    sent = [comment for number, _, comment in cluster.queue() if number not in jobs]
    trained = {path.parent.name for path in kept if path.name == "run.json"}
    assert not [
        comment
        for comment in sent
        for cell in trained
        if f"train_stepped_wildcards_digits_pixels_sgd_{cell[4:]}" in comment
    ]
    if noise == "secure":
        paid_once(study)


def test_a_secure_study_outlives_its_run_s_deaths(cluster, tmp_path, capsys):
    """Killed at random moments; each time the same command goes on, beside jobs that are still at work."""
    seed = int(os.environ.get("DPSTUDY_KILLS_SEED", time.time()))
    study, chance, waited = make_folder(tmp_path / "study"), random.Random(seed), 0
    study.write_config(CONFIG | {"noise": "secure", "release": {"budget": "3.5"}})
    for _ in range(KILLS):
        before = numbers(cluster)
        with at_work(study) as (process, said):
            until(cluster, before, "RUNNING")
            time.sleep(chance.uniform(0, 12))
            assert process.poll() is None, said()
        waited += "waiting for jobs that an earlier run left" in said()
    completes(study)
    paid_once(study)
    with capsys.disabled():
        print(f"\nDPSTUDY_KILLS_SEED={seed}: {KILLS} kills, {waited} of the runs after one waited for jobs")
