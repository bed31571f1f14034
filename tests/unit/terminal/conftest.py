"""Events as the logger plugin tells them."""

import pytest

from terminal.study import Study

CELLS = [
    ["train_stepped", {"dataset": "digits", "entry": "sgd", "epsilon": epsilon}, True] for epsilon in ("1", "2", "4")
]


def started(number, epsilon="1", rule="train_stepped"):
    cell = f"digits/pixels/sgd/eps={epsilon}"
    return {
        "event": "job_info",
        "jobid": number,
        "rule_name": rule,
        "wildcards": {"dataset": "digits", "entry": "sgd", "epsilon": epsilon},
        "output": [f"results/cells/{cell}/metrics.json", f"results/cells/{cell}/ledger.json"],
        "log": [f"results/logs/{rule}/{cell}.log"],
    }


def finished(number):
    return {"event": "job_finished", "job_id": number}


def failed(number, epsilon="1", message=None, logs=()):
    log = [*started(number, epsilon)["log"], *logs]
    return {"event": "job_error", "jobid": number, "log": log, "rule_msg": message}


def said(text, level="INFO"):
    return {"event": "said", "level": level, "text": text}


@pytest.fixture
def planned():
    """A study of 8 cells, of which three are due, and one job more."""
    study = Study(began=100.0)
    study.hear({"event": "run_info", "stats": {"train_stepped": 3, "build_table": 1, "total": 4}}, 100.0)
    due = [*CELLS, ["build_table", {"table": "t"}, False]]
    study.hear({"event": "plan", "study": "tiny", "cells": 8, "due": due}, 100.0)
    return study
