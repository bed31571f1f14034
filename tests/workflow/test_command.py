"""One clone, which nobody may write to, and studies in folders elsewhere: `dpstudy run DIR`, make, Snakemake."""

import os
import subprocess
import sys

import pytest
import yaml

from tests.workflow.conftest import ROOT, TINY, make_folder

SMALL = TINY | {"methods": {"ls": TINY["methods"]["ls"]}, "features": {"pixels": {"extractor": "pixels"}}}
SMALL |= {"backbones": {}, "public": {}, "epsilons": ["1"], "seeds": [0], "figures": {}}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone in which no file and no folder can be written (root may all the same; what is new is looked for)."""
    folder = make_folder(tmp_path_factory.mktemp("clone") / "dpstudy")
    (folder.path / "small.yaml").write_text(yaml.safe_dump(SMALL, sort_keys=False))
    subprocess.run(["chmod", "-R", "a-w", str(folder.path)], check=True)
    before = {path for path in folder.path.rglob("*") if "__pycache__" not in path.parts}
    yield folder
    after = {path for path in folder.path.rglob("*") if "__pycache__" not in path.parts}
    assert after == before
    subprocess.run(["chmod", "-R", "u+w", str(folder.path)], check=True)


def dpstudy(clone, folder, *arguments):
    environment = clone.environment | {"PYTHONPATH": str(clone.path / "workflow"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "dpstudy", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


def test_a_study_is_made_in_another_folder(clone, tmp_path):
    study = str(clone.path / "small.yaml")
    done = dpstudy(clone, tmp_path, "run", study, "--in", "mine", "--cores", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    table = (tmp_path / "mine/results/tables/tiny.csv").read_bytes()
    assert os.listdir(tmp_path) == ["mine"]

    again = dpstudy(clone, tmp_path / "mine", "status", study)
    assert again.returncode == 0 and again.stdout == "cells: 1 done, 0 stale, 0 missing\nnothing to be done\n", (
        again.stderr
    )

    other = dpstudy(clone, tmp_path, "run", study, "--in", "other", "--only", "tiny", "--cores", "2")
    assert other.returncode == 0, other.stdout + other.stderr
    same = dpstudy(clone, tmp_path, "compare", "mine/results", "other/results")
    assert same.returncode == 0, same.stdout
    assert (tmp_path / "other/results/tables/tiny.csv").read_bytes() == table

    found = dpstudy(clone, tmp_path, "inspect", "mine/results/cells/digits/pixels/ls/eps=1/ledger.json")
    assert found.returncode == 0 and "adding or removing one record" in found.stdout


def test_a_release_that_may_not_be_is_one_sentence(clone, tmp_path):
    study = str(clone.path / "small.yaml")
    done = dpstudy(clone, tmp_path, "release", "digits/pixels/ls/eps=1", study, "--cores", "2")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "noise: secure" in done.stderr or "seeded" in done.stderr, done.stderr


def test_snakemake_itself_takes_another_directory(clone, tmp_path):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(SMALL, sort_keys=False))
    command = [sys.executable, "-m", "snakemake", "-s", str(clone.path / "Snakefile"), "--directory", str(tmp_path)]
    environment = clone.environment | {"PYTHONPATH": str(clone.path / "workflow"), "PYTHONDONTWRITEBYTECODE": "1"}
    configured = ["--configfile", str(tmp_path / "config.yaml"), "--cores", "2", "--dry-run", "--quiet", "rules"]
    done = subprocess.run(
        [*command, *configured], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
