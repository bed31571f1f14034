"""What searches found, over all their trials."""

import csv
import statistics

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.tables.build import build_table
from dpstudy.tables.results import Results
from dpstudy.tables.styles.tables.search import STYLE
from dpstudy.tuning.trials import Trial, write_trials

SPACE = {"learning_rate": {"choices": [0.25, 0.5, 1, 2]}}
VALUES = {"sn": [97.0, 98.0, 98.5, 90.0], "gn": [98.6, None, 96.0]}
PUBLISHED = {"paper": "tramer2021", "table": "3", "dataset": "MNIST", "model": "linear"}


def row(*features, **changes):
    cells = [{"features": name, "entry": "linear"} for name in features]
    return {"label": "SN + linear", "dataset": "mnist", "epsilon": "3", "cells": cells} | changes


@pytest.fixture
def results(tmp_path):
    paths = {}
    for name, values in VALUES.items():
        path = paths[f"mnist/{name}/linear/eps=3"] = tmp_path / f"{name}.parquet"
        rates = SPACE["learning_rate"]["choices"]
        trials = [
            Trial({"learning_rate": rates[i]}, v or 0.0, 1.0, "diverged" if v is None else None)
            for i, v in enumerate(values)
        ]
        write_trials(path, trials, SPACE)
    return Results({}, [], trials=paths)


def build(results, tmp_path, *rows):
    spec = {"style": "search", "caption": "Robustness", "searches": list(rows)}
    build_table("t", spec, results, tmp_path / "t.tex", tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        return spec, list(csv.DictReader(file))


def test_statistics_are_over_all_trials_of_all_cells_but_those_that_failed(results, tmp_path):
    _, (found,) = build(results, tmp_path, row("sn", "gn"))
    values = [97.0, 98.0, 98.5, 90.0, 98.6, 96.0]
    middle = statistics.median(values)
    assert (found["trials"], found["failed"]) == ("7", "1")
    assert [float(found[name]) for name in ("min", "max", "median")] == [90.0, 98.6, middle] == [90.0, 98.6, 97.5]
    assert float(found["mad"]) == pytest.approx(statistics.median(abs(value - middle) for value in values))
    assert found["published_median"] == ""


def test_published_statistics_stand_beside(results, tmp_path):
    spec, (found,) = build(results, tmp_path, row("sn", published=PUBLISHED))
    assert [found[f"published_{name}"] for name in ("min", "max", "median", "mad")] == ["96.8", "98.8", "98.4", "0.2"]
    sheet = STYLE.table("t", spec, results).sheets[0]
    assert sheet.blocks[0][0] == (
        "mnist",
        "SN + linear",
        "4",
        "90.0",
        "98.5",
        "97.5",
        "0.8",
        "96.8",
        "98.8",
        "98.4",
        "0.2",
    )
    assert "Robustness" in (tmp_path / "t.tex").read_text() and "96.8" in (tmp_path / "t.tex").read_text()


def test_a_search_of_failures_only_is_named(results, tmp_path):
    write_trials(results.trials["mnist/gn/linear/eps=3"], [Trial({"learning_rate": 2}, 0.0, 1.0, "diverged")], SPACE)
    with pytest.raises(StudyError, match="table t: every trial of 'SN \\+ linear' failed"):
        build(results, tmp_path, row("gn"))
