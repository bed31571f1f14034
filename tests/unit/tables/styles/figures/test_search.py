"""Searches by one hyper-parameter: medians and maxima against a loop over hand-made trials."""

import csv
import itertools
import runpy
import statistics
from pathlib import Path
from types import SimpleNamespace

import pytest

import dpstudy
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.tables.build import build_figure
from dpstudy.tables.results import Results
from dpstudy.tuning.trials import Trial, write_trials
from tests.unit.tables.conftest import Inputs

SCRIPT = Path(dpstudy.__file__).parents[1] / "scripts" / "draw_figure.py"
SPACE = {
    "batch_size": {"choices": [512, 4096, 16384]},
    "learning_rate": {"choices": [0.25, 1.0, 0.5]},
    "optimiser": {"choices": ["sgd", "adam"]},
}
GRID = [dict(zip(SPACE, values, strict=True)) for values in itertools.product(*(a["choices"] for a in SPACE.values()))]
LINEAR = {
    "label": "linear",
    "dataset": "mnist",
    "epsilon": "3",
    "cells": [
        {"features": "dn", "entry": "sgd", "label": "DN 8"},
        {"features": "gn", "entry": "sgd", "label": "GN 27"},
    ],
}
CNN = LINEAR | {"label": "CNN", "cells": [{"features": "pixels", "entry": "cnn"}]}
SPEC = {
    "style": "search",
    "title": "Views",
    "panels": [
        {"by": "batch_size"},
        {"by": "learning_rate", "title": "base rate"},
        {"by": "optimiser"},
        {"by": "label", "title": "normalisation"},
    ],
    "searches": [LINEAR, CNN],
}
AXES = {"features": ["dn", "gn", "pixels"], "entries": ["sgd", "cnn"]}
FAILED = ("gn", 4)  # one trial


def value(features, number):
    return {"dn": 95.0, "gn": 96.0, "pixels": 90.0}[features] + (7 * number % 11) / 5


@pytest.fixture
def trials(tmp_path):
    paths = {}
    for features, entry in (("dn", "sgd"), ("gn", "sgd"), ("pixels", "cnn")):
        path = paths[f"mnist/{features}/{entry}/eps=3"] = tmp_path / f"{features}.parquet"
        tried = [
            Trial(setting, 0.0, 1.0, "diverged")
            if (features, number) == FAILED
            else Trial(setting, value(features, number), 1.0)
            for number, setting in enumerate(GRID)
        ]
        write_trials(path, tried, SPACE)
    return paths


def metrics_of(trials):
    """Cell -> a metrics.json beside its trials."""
    paths = {cell: path.with_suffix(".json") for cell, path in trials.items()}
    for path in paths.values():
        write_json(path, {"classes": 10})
    return paths


def build(trials, folder, name="f", **changes):
    paths = [folder / f"{name}.{kind}" for kind in ("pdf", "png", "csv", "svg")]
    build_figure(name, SPEC | changes, Results(AXES, [], trials=trials, metrics=metrics_of(trials)), *paths)
    with open(paths[2], newline="") as file:
        return [path.read_bytes() for path in paths], list(csv.DictReader(file))


def test_medians_and_maxima_are_over_all_trials_with_the_value(trials, tmp_path):
    _, rows = build(trials, tmp_path)
    for row in rows:
        features = {"linear": ["dn", "gn"], "CNN": ["pixels"]}[row["search"]]
        if row["by"] == "label":
            features = [{"DN 8": "dn", "GN 27": "gn"}[row["value"]]]
        values = []
        for kind, (number, setting) in itertools.product(features, enumerate(GRID)):
            if row["by"] == "label" or str(setting[row["by"]]) in (row["value"], f"{row['value']}.0"):
                values += [] if (kind, number) == FAILED else [value(kind, number)]
        assert int(row["trials"]) - int(row["failed"]) == len(values) > 0
        assert float(row["median"]) == pytest.approx(statistics.median(values))
        assert float(row["max"]) == pytest.approx(max(values))
    assert sum(int(row["failed"]) for row in rows if row["by"] == "batch_size") == 1


def test_numbers_stand_in_order_and_cells_without_a_label_are_left_out(trials, tmp_path):
    _, rows = build(trials, tmp_path)
    found = {}
    for row in rows:
        found.setdefault((row["by"], row["search"]), []).append(row["value"])
    assert found["batch_size", "CNN"] == ["512", "4096", "16384"]
    assert found["learning_rate", "linear"] == ["0.25", "0.5", "1"]
    assert found["optimiser", "linear"] == ["sgd", "adam"]
    assert found["label", "linear"] == ["DN 8", "GN 27"] and ("label", "CNN") not in found


def test_a_second_build_gives_the_same_bytes(trials, tmp_path):
    assert build(trials, tmp_path, "a")[0] == build(trials, tmp_path, "b")[0]


def test_a_value_whose_trials_all_failed_is_not_drawn(trials, tmp_path):
    bad = [Trial(s, 0.0 if s["batch_size"] == 512 else 91.0, 1.0, "x" * (s["batch_size"] == 512)) for s in GRID]
    write_trials(trials["mnist/pixels/cnn/eps=3"], bad, SPACE)
    _, rows = build(trials, tmp_path, searches=[CNN], panels=[{"by": "batch_size"}])
    assert [(row["trials"], row["failed"], row["median"]) for row in rows] == [
        ("6", "6", ""),
        ("6", "0", "91.0"),
        ("6", "0", "91.0"),
    ]
    write_trials(trials["mnist/pixels/cnn/eps=3"], [Trial(s, 0.0, 1.0, "diverged") for s in GRID], SPACE)
    with pytest.raises(StudyError, match="figure f: no trial that succeeded has a value of 'batch_size'"):
        build(trials, tmp_path, searches=[CNN], panels=[{"by": "batch_size"}])


def test_the_script_draws_a_figure_of_searches(trials, study, tmp_path, monkeypatch):
    outputs = {kind: str(tmp_path / f"script.{kind}") for kind in ("pdf", "png", "csv", "svg")}
    snakemake = SimpleNamespace(
        log=[str(tmp_path / "log")],
        wildcards=SimpleNamespace(figure="f"),
        input=Inputs(summary=study.summary, trials=list(trials.values()), metrics=list(metrics_of(trials).values())),
        params=SimpleNamespace(spec=SPEC, axes=AXES, documents=dict.fromkeys(("trials", "metrics"), list(trials))),
        output=SimpleNamespace(**outputs),
    )
    monkeypatch.syspath_prepend(SCRIPT.parent)
    runpy.run_path(str(SCRIPT), init_globals={"snakemake": snakemake}, run_name="__main__")
    build(trials, tmp_path)
    assert (tmp_path / "script.png").read_bytes() == (tmp_path / "f.png").read_bytes()
