"""One clone, which nobody may write to, and studies in folders elsewhere: `dpstudy run DIR`, make, Snakemake."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from tests.workflow.clinic import CONFIG, write_clinic
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


def dpstudy(clone, folder, *arguments, **more):
    environment = (
        clone.environment | {"PYTHONPATH": str(clone.path / "workflow"), "PYTHONDONTWRITEBYTECODE": "1"} | more
    )
    command = [sys.executable, "-m", "dpstudy", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


def test_a_study_is_made_in_another_folder(clone, tmp_path):
    study = str(clone.path / "small.yaml")
    done = dpstudy(clone, tmp_path, "run", study, "--in", "mine", "--cores", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    table = (tmp_path / "mine/results/tables/tiny.csv").read_bytes()
    assert os.listdir(tmp_path) == ["mine"] and done.stderr.endswith("(paths above count from mine)\n")

    again = dpstudy(clone, tmp_path / "mine", "status", study)
    assert again.returncode == 0 and again.stdout == "cells: 1 done, 0 stale, 0 missing\nnothing to be done\n", (
        again.stderr
    )

    asked = dpstudy(clone, tmp_path, "status", study, "--in", "further/other")
    assert asked.stdout.startswith("cells: 0 done, 0 stale, 1 missing") and os.listdir(tmp_path) == ["mine"]

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


def test_a_budget_holds_over_two_folders_of_one_clone(clone, tmp_path):
    write_clinic(tmp_path / "data/clinic")
    only = CONFIG | {"methods": {"least-squares": CONFIG["methods"]["least-squares"]}}

    def run(command, folder, budget):
        (tmp_path / f"{folder}.yaml").write_text(
            yaml.safe_dump(only | {"release": {"budget": budget}}, sort_keys=False)
        )
        cores = [] if command == "status" else ["--cores", "2"]
        return dpstudy(
            clone, tmp_path, command, f"{folder}.yaml", "--in", folder, *cores, DPSTUDY_DATA=str(tmp_path / "data")
        )

    first = run("run", "one", "3")
    assert first.returncode == 0, first.stdout + first.stderr
    book = tmp_path / "data/dpstudy-spent.jsonl"
    assert book.read_text().count("\n") == 1

    refused = run("run", "two", "3")
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert (
        "nothing was run: release: {budget: 3}: 1 model of 'clinic' would bring what is spent to about ε = 3.056"
        in (refused.stderr)
    )
    assert book.read_text().count("\n") == 1 and not list((tmp_path / "two").rglob("model.safetensors"))
    assert "1 done, 0 stale, 0 missing\nnothing to be done" in run("status", "one", "3").stdout

    hopeless = run("status", "three", "1")
    assert (
        hopeless.returncode == 1
        and "a run would stop at once: cell clinic/pixels/least-squares/eps=2: nothing is left of release: "
        in (hopeless.stderr)
    )
    assert (
        "nothing is left of release: {budget: 1} (ε = " in hopeless.stderr
        and " is spent on these records" in hopeless.stderr
    )

    second = run("run", "two", "4.1")
    assert second.returncode == 0, second.stdout + second.stderr
    assert book.read_text().count("\n") == 2
    spent = json.loads((tmp_path / "two/results/privacy/total.json").read_text())["datasets"]["clinic"]["spent"]
    assert spent["seeds"] == 2
    told = run("status", "one", "3").stdout
    assert "cells: 1 done, 0 stale, 0 missing" in told and "total_privacy 1" in told, told


MODULE = """
configfile: "config.yaml"

module dpstudy:
    snakefile: {snakefile!r}
    config: config

use rule * from dpstudy as dp_*

rule mine:
    input: "results/tables/tiny.csv"
    output: "mine.txt"
    shell: "wc -l < {{input}} > {{output}}"
"""


def snakemake(clone, folder, *arguments, **more):
    environment = (
        clone.environment | {"PYTHONPATH": str(clone.path / "workflow"), "PYTHONDONTWRITEBYTECODE": "1"} | more
    )
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_another_workflow_has_it_as_a_module(clone, tmp_path):
    (tmp_path / "Snakefile").write_text(MODULE.format(snakefile=str(clone.path / "Snakefile")))
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(SMALL, sort_keys=False))
    done = snakemake(clone, tmp_path, "mine.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "mine.txt").read_text().strip() == "2"
    again = snakemake(clone, tmp_path, "mine.txt")
    assert "Nothing to be done" in again.stdout + again.stderr

    (tmp_path / "config.yaml").write_text(yaml.safe_dump(SMALL | {"noise": "secure"}, sort_keys=False))
    refused = snakemake(clone, tmp_path, "mine.txt", "--dry-run")
    assert (
        refused.returncode == 1
        and "noise: secure is for a study that runs by itself" in refused.stdout + refused.stderr
    )


REMOTE = MODULE.replace("{snakefile!r}", 'github("some/dpstudy", path="workflow/Snakefile", tag="v1")')


def test_a_module_of_a_hosted_repository_brings_the_whole_of_its_commit(clone, tmp_path):
    """As snakedeploy writes it; Snakemake's own clone of the repository lies in its cache already."""
    repository = tmp_path / "repository"
    shutil.copytree(clone.path, repository, ignore=shutil.ignore_patterns("__pycache__", "results", ".*"))
    subprocess.run(["chmod", "-R", "u+w", str(repository)], check=True)
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"], ["tag", "v1"]):
        subprocess.run([*git, *command], check=True)
    cached = tmp_path / "cache/snakemake/snakemake/source-cache/snakemake-git-cache/github.com/some/dpstudy"
    subprocess.run(["git", "clone", "-q", "--bare", str(repository), str(cached)], check=True)

    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "Snakefile").write_text(REMOTE.format())
    (mine / "config.yaml").write_text(yaml.safe_dump(SMALL, sort_keys=False))
    for _ in range(2):
        done = snakemake(clone, mine, "mine.txt", XDG_CACHE_HOME=str(tmp_path / "cache"))
        assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing to be done" in done.stdout + done.stderr
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    assert os.listdir(mine / ".snakemake/dpstudy") == [commit] and (mine / "mine.txt").read_text().strip() == "2"


def test_the_catalogue_s_snakefile_is_the_same(clone, tmp_path):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(SMALL, sort_keys=False))
    plans = [
        snakemake(clone, tmp_path, "-s", str(clone.path / name), "--dry-run", "--quiet", "rules")
        for name in ("Snakefile", "workflow/Snakefile")
    ]
    assert plans[0].returncode == plans[1].returncode == 0, plans[1].stderr
    jobs = [dict(re.findall(r"^(\w+) +(\d+)$", plan.stdout, re.MULTILINE)) for plan in plans]
    assert jobs[0]["build_table"] == "1" and jobs[0].pop("all") == jobs[1].pop("whole") and jobs[0] == jobs[1]


def test_the_demo_needs_nothing_but_the_clone(clone, tmp_path):
    data = ROOT / "studies/demo"
    assert sum(path.stat().st_size for path in data.rglob("*")) < 2e6
    done = dpstudy(
        clone, tmp_path, "run", str(ROOT / "studies/demo.yaml"), "--in", "demo", "--cores", "2", DPSTUDY_DATA=str(data)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = tmp_path / "demo/results"
    rows = list(csv.DictReader((results / "tables/demo.csv").open()))
    assert len(rows) == 9 and all(float(row["certified_epsilon"]) <= float(row["epsilon"]) for row in rows)
    assert all(float(row["ours"]) > 70 for row in rows)
    attacked = [row for row in rows if row["audited_epsilon"]]
    assert len(attacked) == 1 and 0 < float(attacked[0]["audited_epsilon"]) < float(attacked[0]["certified_epsilon"])
    assert (results / "figures/demo.pdf").stat().st_size and len(list(results.glob("cells/**/ledger.json"))) == 9
