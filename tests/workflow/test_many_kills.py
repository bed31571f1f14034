"""A study that is killed at random moments, as often as DPSTUDY_KILLS says (a command of its own: it takes minutes)."""

import contextlib
import os
import random
import shutil
import time

import psutil
import pytest

from tests.workflow.conftest import make_folder
from tests.workflow.kills import Run, as_measured, results_of, temporary_files

KILLS = int(os.environ.get("DPSTUDY_KILLS", "0"))
LONGEST = 9.0  # seconds until a kill: Snakemake needs about two of them before the first job


def kill(run: Run, chance: random.Random) -> str:
    """Kill the whole run, Snakemake alone, or one of its jobs; returns which."""
    what = chance.choice(["everything", "Snakemake", "a job"])
    wanted = {"a job": ".snakemake/scripts", "Snakemake": "bin/snakemake"}.get(what)
    found = [process for process in run.alive() if wanted and wanted in " ".join(command_of(process))]
    if not found:
        run.kill_all()
        return "everything"
    with contextlib.suppress(psutil.NoSuchProcess):
        chance.choice(found).kill()
    run.wait()
    return what


def command_of(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


@pytest.mark.skipif(not KILLS, reason="DPSTUDY_KILLS=50 asks for it")
def test_random_kills_change_no_byte(finished, tmp_path, capsys):
    seed = int(os.environ.get("DPSTUDY_KILLS_SEED", time.time()))
    chance = random.Random(seed)
    with capsys.disabled():
        print(f"\nDPSTUDY_KILLS_SEED={seed}")
    study, expected = make_folder(tmp_path / "study"), as_measured(results_of(finished))
    done, rounds = [], 0
    while len(done) < KILLS:
        run = Run(study)
        deadline = time.monotonic() + chance.uniform(0, LONGEST)
        while time.monotonic() < deadline and run.process.poll() is None:
            time.sleep(0.01)
        if run.process.poll() is None:
            done.append(kill(run, chance))
        else:  # complete: what it has must be right, and it begins anew
            assert run.wait() == 0, run.said()
            assert as_measured(results_of(study)) == expected
            rounds += 1
            shutil.rmtree(study.path / "results")
            shutil.rmtree(study.path / ".snakemake")
    last = Run(study)
    assert last.wait() == 0, last.said()
    assert temporary_files(study) == []
    found = as_measured(results_of(study))
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] != expected[name]] == []
    with capsys.disabled():
        print({what: done.count(what) for what in set(done)}, f"{rounds + 1} complete studies")
