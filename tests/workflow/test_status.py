"""`make status`: done, stale and missing cells."""

import copy
import fcntl
import json
import os
import socket
import subprocess
import sys

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
