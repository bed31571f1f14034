"""`make status`: done, stale and missing cells."""

import copy
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys

from PIL import Image

from tests.workflow.conftest import TINY


def status(study, *arguments):
    command = [sys.executable, "workflow/status.py", *arguments]
    result = subprocess.run(command, cwd=study.path, env=study.environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_finished_study_has_nothing_to_do(study):
    assert status(study) == "cells: 8 done, 0 stale, 0 missing\nnothing to be done\n"
    assert json.loads((study.path / ".snakemake/dpstudy-imports.json").read_text())["imports"]  # found once


def test_changed_and_new_cells_are_told_apart(study):
    config = copy.deepcopy(TINY)
    config["methods"]["sgd"]["learning_rate"] = 1.5
    config["epsilons"] = ["1", "2", "inf"]
    study.write_config(config)
    before = sorted(path for path in study.path.rglob("results/**/*"))
    run = study.path / ".snakemake/dpstudy-run"
    run.write_text(f"{socket.gethostname()} {os.getpid()} \n")
    with open(run, "a") as held:  # as by a run
        fcntl.flock(held, fcntl.LOCK_EX)
        said = status(study)
    assert said.startswith("cells: 4 done, 4 stale, 4 missing\n")
    assert "  stale   digits/pixels/sgd/eps=1  (parameters changed: learning_rate: 2.0 -> 1.5)\n" in said
    missing = ["pixels/ls", "pixels/sgd", "cnn/ls", "cnn/sgd"]
    assert "".join(f"  missing digits/{cell}/eps=2\n" for cell in missing) in said
    assert f"\nprocess {os.getpid()} is at work in this folder; " in said
    assert "also to run: " in said and "build_table 1" in said and "train_" not in said.split("also to run")[1]
    assert sorted(path for path in study.path.rglob("results/**/*")) == before


def test_a_config_on_the_command_line_is_read_as_snakemake_does(study):
    assert status(study, "--config", "epsilons=[1,inf]").startswith("cells: 8 done")
    command = [sys.executable, "workflow/status.py", "--config", "seeds=[one]"]
    result = subprocess.run(command, cwd=study.path, env=study.environment, capture_output=True, text=True)
    (sentence,) = result.stderr.splitlines()
    assert result.returncode and sentence.endswith("config.yaml: seeds[0]: 'one' must be an integer")
    assert status(study, "--config", "seeds=[0,1]").startswith("cells: "), "numbers are text there, and read as numbers"


def test_a_wrong_config_is_said(study):
    config = copy.deepcopy(TINY) | {"seedz": [0]}
    study.write_config(config)
    for program in (["workflow/status.py"], ["workflow/run.py", "--cores", "1"]):
        command = [sys.executable, *program]
        result = subprocess.run(command, cwd=study.path, env=study.environment, capture_output=True, text=True)
        (sentence,) = result.stderr.splitlines()  # and no more: no line of a rule, nothing of a study that stopped
        assert result.returncode and sentence.startswith("dpstudy: ")
        assert "config.yaml: seedz: unknown key (did you mean 'seeds'?)" in sentence


def test_what_a_run_would_refuse_is_said_and_nothing_is_touched(empty):
    config = copy.deepcopy(TINY) | {"public": {}, "backbones": {}, "features": {"pixels": {"extractor": "pixels"}}}
    config["datasets"] = {
        "own": {"reader": "image_folder", "location": "photos", "delta": "0.5", "classes": ["a", "b"]}
    }
    config["datasets"]["own"] |= {"test_split": "public", "splits": {"test": 0.2}}
    config["tables"], config["figures"] = {"tiny": {"dataset": "own"}}, {}
    for name in ("a/1", "a/2", "a/3", "b/1", "b/2", "b/3"):
        path = empty.path / f"data/photos/{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), int(name[2:]) * 9 + (name[0] == "a")).save(path)
    empty.write_config(config)
    assert planned(empty)[0] == 0  # Snakemake makes folders of its own
    before = kept(empty)
    command = [sys.executable, "workflow/status.py"]
    said = subprocess.run(command, cwd=empty.path, env=empty.environment, capture_output=True, text=True)
    (sentence,) = said.stderr.splitlines()
    assert said.returncode == 1 and said.stdout.startswith("cells: 0 done, 0 stale, 4 missing\n")
    assert sentence.startswith("dpstudy: a run would stop at once: datasets.own.delta: 0.5 is not below 1/n = 1/")
    assert "runs them on this machine" not in said.stdout
    code, text = planned(empty)
    assert code == 0 and f"\n{sentence}\n" in text, "a dry run names its jobs, and says it last"
    assert kept(empty) == before
    run = empty.snakemake()
    assert run.returncode and f"nothing was run: {sentence.partition('at once: ')[2]}" in run.stderr


def test_a_dry_run_with_nothing_to_do_says_so(study):
    code, text = planned(study)
    assert code == 0 and "Nothing to be done (all requested files are present and up to date)." in text
    assert "a run would stop" not in text


def planned(study):
    """(exit status, all that was printed) of a dry run."""
    done = study.snakemake("-n")
    return done.returncode, done.stdout + done.stderr


def kept(study):
    """What lies in results, with times."""
    return {path: path.stat().st_mtime_ns for path in (study.path / "results").rglob("*")}


def test_a_file_of_a_cell_that_was_deleted_is_missed(study):
    """Not only by whom a change of something else makes read it."""
    cell = study.path / "results/cells/digits/pixels/ls/eps=1"
    for name in ("ledger.json", "model.safetensors", "run.json"):
        (cell / name).rename(study.path / name)
        said = status(study)
        assert said.startswith(
            "cells: 7 done, 1 stale, 0 missing\n  stale   digits/pixels/ls/eps=1  (Missing output"
        ), name
        (study.path / name).rename(cell / name)
    assert status(study).startswith("cells: 8 done, 0 stale, 0 missing")


def test_a_missing_cell_is_listed_with_what_stopped_it_last(study):
    """Such as a budget that others used up meanwhile."""
    cell = "digits/pixels/ls/eps=1"
    log = study.path / f"results/logs/train_closed_form/{cell}.log"
    shutil.rmtree(study.path / "results/cells" / cell)
    assert f"  missing {cell}\n" in status(study)
    log.write_text(log.read_text() + "2026-11-27 19:34:27,550 ERROR beyond release: {budget: 3}; leave it out\n")
    assert f"  missing {cell}  (last time: beyond release: {{budget: 3}}; leave it out)\n" in status(study)
    log.write_text(log.read_text() + "2026-11-27 19:35:27,550 INFO done in 0.4 s\n")
    config = copy.deepcopy(TINY)
    config["datasets"]["digits"]["splits"]["test"] = 0.3
    study.write_config(config)
    said = status(study)
    assert f"  missing {cell}\n" in said
    assert "  stale   digits/cnn/ls/eps=1  (prepare_shard: parameters changed: test: 0.2 -> 0.3)\n" in said
