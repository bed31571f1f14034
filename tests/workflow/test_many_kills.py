"""A study that is killed at random moments, as often as DPSTUDY_KILLS says (a command of its own: it takes minutes)."""

import contextlib
import copy
import os
import random
import shutil
import time

import psutil
import pytest

from dpstudy.config.cells import unfold
from dpstudy.core.files import sha256
from dpstudy.privacy.spending import BOOK, Spending
from dpstudy.privacy.spent_lines import is_begun
from tests.workflow.conftest import TINY, make_folder
from tests.workflow.kills import Run, as_measured, results_of, temporary_files
from tests.workflow.test_seed_jobs import STUDY

KILLS = int(os.environ.get("DPSTUDY_KILLS", "0"))
LONGEST = 9.0  # seconds until a kill: Snakemake needs about two of them before the first job
ASKED = pytest.mark.skipif(not KILLS, reason="DPSTUDY_KILLS=50 asks for it")
SECURE = copy.deepcopy(STUDY) | {"noise": "secure", "seeds": [0], "release": {"budget": "4.1"}}
SECURE["methods"] = {name: TINY["methods"][name] for name in ("ls", "sgd")} | STUDY["methods"]
SECURE["features"] = {"pixels": {"extractor": "pixels"}} | STUDY["features"]
SECURE["cells"] = [{"features": ["pixels"], "entries": ["ls", "sgd"]}, {"features": ["images"], "entries": ["wrn"]}]
PAID = sorted((cell.path, 0) for cell in unfold(SECURE))


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


def many_kills(study, is_right, say):
    """Run a study and kill it, KILLS times in all, beginning anew whenever it was complete; `is_right` looks at each
    that is."""
    seed = int(os.environ.get("DPSTUDY_KILLS_SEED", time.time()))
    chance = random.Random(seed)
    say(f"\nDPSTUDY_KILLS_SEED={seed}")
    done, rounds = [], 0
    while len(done) < KILLS:
        run = Run(study)
        deadline = time.monotonic() + chance.uniform(0, LONGEST)
        while time.monotonic() < deadline and run.process.poll() is None:
            time.sleep(0.01)
        if run.process.poll() is None:
            done.append(kill(run, chance))
        else:
            assert run.wait() == 0, run.said()
            is_right(study)
            rounds += 1
            shutil.rmtree(study.path / "results")
            shutil.rmtree(study.path / ".snakemake")
    last = Run(study)
    assert last.wait() == 0, last.said()
    assert temporary_files(study) == []
    is_right(study)
    say({what: done.count(what) for what in set(done)}, f"{rounds + 1} complete studies")


@pytest.fixture
def say(capsys):
    def said(*words):
        with capsys.disabled():
            print(*words)

    return said


@ASKED
def test_random_kills_change_no_byte(finished, tmp_path, say):
    expected = as_measured(results_of(finished))

    def is_right(study):
        found = as_measured(results_of(study))
        assert found.keys() == expected.keys()
        assert [name for name in expected if found[name] != expected[name]] == []

    many_kills(make_folder(tmp_path / "study"), is_right, say)


def paid_for_once(study):
    """Each training that secure noise paid for stands in the book once, and is what the cell has."""
    book = Spending(study.path / BOOK)
    trainings = book.trainings()
    assert sorted((line["cell"], line["seed"]) for line in trainings) == PAID
    assert all("files" in line for line in trainings)
    begun = [line["training"] for line in book.entries() if is_begun(line)]
    assert len(begun) == len(set(begun)) and set(begun) <= {line.get("training") for line in trainings}
    for line in trainings:
        deep = f"results/runs/{line['cell']}/seed={line['seed']}"
        folder = study.path / (deep if "/wrn/" in deep else f"results/cells/{line['cell']}")
        assert {name: sha256(folder / name) for name in line["files"]} == line["files"]
        (kept,) = (study.path / "results/privacy/paid/cells" / line["cell"] / f"seed={line['seed']}").glob("[!.]*")
        assert {path.name: sha256(path) for path in kept.iterdir()} == line["files"]


@ASKED
def test_random_kills_of_a_secure_study_lose_nothing_and_draw_nothing_twice(tmp_path, say):
    study = make_folder(tmp_path / "study")
    study.write_config(SECURE)
    many_kills(study, paid_for_once, say)
