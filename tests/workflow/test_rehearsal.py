"""`dpstudy rehearse` on a clinic with secure noise."""

import os
import subprocess
import sys
import time

import pytest
import yaml

from dpstudy.privacy.data_book import NAME
from tests.workflow.clinic import CONFIG, write_clinic
from tests.workflow.conftest import ROOT

pytestmark = pytest.mark.slow


def rehearse(folder, *arguments):
    outside = {name: value for name, value in os.environ.items() if name != "DPSTUDY_DATA"}
    environment = outside | {"PYTHONPATH": str(ROOT / "workflow"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "dpstudy", "rehearse", *arguments, "--cores", "2"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def clinic(tmp_path):
    write_clinic(tmp_path / "data/clinic")
    (tmp_path / "data/public").mkdir()
    methods = {"least-squares": {"method": "least_squares"}}
    config = CONFIG | {"methods": methods, "tables": {"tiny": {"dataset": "clinic"}}, "release": {"budget": "2"}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def test_nothing_is_spent_and_nothing_is_left(clinic):
    before = sorted(clinic.rglob("*"))
    done = rehearse(clinic, "mine.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(clinic.rglob("*")) == before and not (clinic / "data" / NAME).exists()
    for words in (
        "rehearsing mine.yaml on drawn images (clinic); nothing is spent",
        "train_closed_form",
        "write_bundle",
    ):
        assert words in done.stdout
    assert "  of clinic the study spends epsilon 2 at delta 0.001, all models together" in done.stdout
    assert "  with these models it would be about 2, which a run allows\n" in done.stdout


def test_what_is_kept_has_a_book_of_its_own_and_no_image_of_the_owners(clinic):
    (clinic / "data" / NAME).touch()  # below it, a study of the owner's would write there
    done = rehearse(clinic, "mine.yaml", "--in", "data/tried", "--keep")
    assert done.returncode == 0, done.stdout + done.stderr
    tried = clinic / "data" / "tried"
    assert tried.stat().st_mode & 0o777 == 0o700 and (tried / "data" / NAME).read_text()
    assert not (clinic / "data" / NAME).read_text() and (tried / "data/public").is_symlink()
    assert not (tried / "data/clinic").exists()
    assert len(list((tried / "data/drawn-clinic").glob("*.png"))) == 184
    again = rehearse(clinic, "mine.yaml", "--in", "data/tried")
    assert (
        again.returncode == 1 and "tried: is there already, and not empty; rehearse in another folder" in again.stderr
    )


def test_mistakes_are_told_before_anything_is_drawn(clinic):
    table = clinic / "data/clinic/table.csv"
    table.write_text(table.read_text().replace(",a,", ",c,", 1))
    done = rehearse(clinic, "mine.yaml")
    assert done.returncode == 1 and "unknown class 'c'" in done.stderr and "Traceback" not in done.stderr
    assert not (clinic / "rehearsal").exists()
    (clinic / "mine.yaml").write_text(yaml.safe_dump({"study": "x"}))
    assert "dpstudy: mine.yaml: 5 mistakes" in rehearse(clinic, "mine.yaml").stderr
    (clinic / "mine.yaml").write_text("study: {")
    done = rehearse(clinic, "mine.yaml")
    assert done.returncode == 1 and "Traceback" not in done.stderr and "mine.yaml" in done.stderr
    assert "no such file" in rehearse(clinic, "other.yaml").stderr


def test_one_that_is_ended_leaves_nothing(clinic):
    before, command = sorted(clinic.rglob("*")), [sys.executable, "-m", "dpstudy", "rehearse", "mine.yaml"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}
    process = subprocess.Popen(
        command, cwd=clinic, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not (clinic / "rehearsal/results/data").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.terminate()
    assert process.wait(30) == 143
    time.sleep(2)  # in which a job that lived on would write again
    assert sorted(clinic.rglob("*")) == before
