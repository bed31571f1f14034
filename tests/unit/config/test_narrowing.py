"""Part of a study: `only` some tables and figures, and the cells that they are made of."""

import copy
import zlib
from pathlib import Path

import pytest
import yaml

from dpstudy.config.cells import unfold
from dpstudy.config.including import read_config
from dpstudy.config.loading import load
from dpstudy.config.narrowing import study_of
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.evaluation.metrics import names as metric_names
from dpstudy.evaluation.summary import read_summary, write_summary
from dpstudy.schema.methods import hyperparameters
from dpstudy.tables.build import build_table
from dpstudy.tables.results import Results
from dpstudy.tables.styles import style_of
from dpstudy.tables.styles.figures.epsilons import collect

STUDIES = sorted((Path(__file__).parents[3] / "studies").glob("*.yaml"))
QUICK = ("own-data", "mehta2023-small")  # the others take a minute together
MARKED = [path if path.stem in QUICK else pytest.param(path, marks=pytest.mark.slow) for path in STUDIES]
PRINTED = ("plain", "grouped", "best", "ceiling", "claims", "parameters")  # styles that read nothing but cells


def loaded(path, **changes):
    return load(read_config(path) | changes)


def axes_of(config):
    kinds = {"datasets": "datasets", "features": "features", "entries": "methods", "epsilons": "epsilons"}
    return {axis: list(config[kind]) for axis, kind in kinds.items()}


def written(config, cells, folder):
    """Results of these cells, each with numbers of its own."""
    ledgers, metrics, listed = {}, {}, []
    for cell in cells:
        names = {"dataset": cell.dataset, "features": cell.features, "entry": cell.entry, "epsilon": cell.epsilon}
        path, options = folder / cell.path, cell.options(config)
        value = 50 + zlib.crc32(cell.path.encode()) % 4000 / 100
        scores = {name: value / (1 if name.endswith(("top1", "top5")) else 100) for name in metric_names()}
        seeds = [{"seed": seed, "split": "test", **scores} for seed in (0, 1)]
        content = {"method": options["method"], "classes": 10, "parameters": round(100 * value), "seeds": seeds}
        chosen = {"steps": 100, "noise_multiplier": 1.0, "learning_rate": 1.0} | hyperparameters(options)
        content |= {"made_by": {}, "hyperparameters": chosen}
        write_json(path / "metrics.json", names | content)
        certified = None if cell.epsilon == "inf" else 0.9 * float(cell.epsilon)
        event = {"name": "gradient", "mechanism": "gaussian", "noise_multiplier": 1.25, "sensitivity": 0.1, "count": 3}
        ledger = {"n": 60_000, "delta": 1e-5, "epsilon": certified, "adjacency": "add-remove-one", "unit": "record"}
        ledger |= {
            "guarantee": "proved" if certified else "none",
            "events": [event | {"sampling": "none", "sampling_rate": 1.0}],
        }
        ledger |= {"noise": "seeded", "not_accounted": [], "accountant": "exact", "target_epsilon": cell.epsilon}
        write_json(path / "ledger.json", ledger)
        ledgers[cell.path], metrics[cell.path] = path / "ledger.json", path / "metrics.json"
        listed.append(names | {"metrics": path / "metrics.json"})
    write_summary(listed, folder / "summary.csv", folder / "summary.parquet")
    return Results(axes_of(config), read_summary(folder / "summary.parquet"), ledgers=ledgers, metrics=metrics)


@pytest.mark.parametrize("path", MARKED, ids=lambda path: path.stem)
def test_a_table_of_part_of_a_study_is_that_of_the_whole(path, tmp_path):
    config = loaded(path)
    whole = written(config, unfold(config), tmp_path / "whole")
    for name, spec in config["tables"].items():
        if spec["style"] not in PRINTED or spec.get("searches"):
            continue
        part = loaded(path, only=name)
        assert list(part["tables"]) == [name] and {*part["figures"]} <= {name}
        results = written(config, unfold(part), tmp_path / name)
        for label, found in (("whole", whole), ("part", results)):
            build_table(name, spec, found, tmp_path / f"{label}.tex", tmp_path / f"{label}.csv")
        assert (tmp_path / "part.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes(), name
    for name, spec in config["figures"].items():
        if spec["style"] == "epsilons":
            part = loaded(path, only=[name])
            assert list(part["figures"]) == [name] and {*part["tables"]} <= {name}
            written(config, unfold(part), tmp_path / name)
            summaries = [read_summary(tmp_path / folder / "summary.parquet") for folder in ("whole", name)]
            assert collect(name, spec, axes_of(config), summaries[0]) == collect(
                name, spec, axes_of(config), summaries[1]
            )


STUDY = {
    "study": "small",
    "datasets": {name: {"reader": "digits", "delta": "1e-4"} for name in ("a", "b")},
    "features": {name: {"extractor": "pixels"} for name in ("x", "y")},
    "methods": {name: {"method": "least_squares"} for name in ("one", "two")},
    "epsilons": ["1", "2"],
    "seeds": [0],
}
LINE = {"dataset": "a", "features": "x", "entry": "one", "epsilon": "1"}


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("tables", {"dataset": "a"}, ["a/x/one/1 2", "a/x/two/1 2", "a/y/one/1 2", "a/y/two/1 2"]),
        ("tables", {"datasets": ["b"], "epsilons": ["2"], "rows": [{"features": "y", "entry": "two"}]}, ["b/y/two/2"]),
        (
            "tables",
            {
                "style": "grouped",
                "groups": [{"dataset": "a", "features": "x"}, {"dataset": "b", "features": "y"}],
                "rows": [{"entry": "one"}],
            },
            ["a/x/one/1 2", "b/y/one/1 2"],
        ),
        (
            "tables",
            {
                "style": "side_by_side",
                "dataset": "a",
                "columns": [{"features": "x"}, {"features": "y"}],
                "rows": [{"entry": "one", "epsilon": "1"}, {"entry": "two", "epsilon": "2"}],
            },
            ["a/x/one/1", "a/x/two/2", "a/y/one/1", "a/y/two/2"],
        ),
        (
            "tables",
            {"style": "claims", "roles": {"b": {"linear": [{"features": "x", "entry": "two"}]}}},
            ["b/x/two/1 2"],
        ),
        (
            "tables",
            {"style": "claims", "methods": {"DP-LS": {1: ["two"]}}, "pretraining": {"least": "x"}, "datasets": ["a"]},
            ["a/x/two/1 2"],
        ),
        (
            "tables",
            {
                "style": "ceiling",
                "datasets": ["a"],
                "controls": [{"features": "x", "entry": "one", "independent": "two"}],
            },
            ["a/x/one/1 2", "a/x/two/1 2"],
        ),
        (
            "tables",
            {
                "style": "search",
                "searches": [{"dataset": "b", "epsilon": "1", "cells": [{"features": "y", "entry": "one"}]}],
            },
            ["b/y/one/1"],
        ),
        (
            "tables",
            {"style": "parameters", "models": [{"features": "x", "entry": "two"}], "dataset": "b"},
            ["b/x/two/1 2"],
        ),
        ("tables", {"style": "splits"}, []),
        (
            "figures",
            {"style": "curve", "panels": [{"lines": [LINE, LINE | {"epsilon": "2"}]}, {"lines": [LINE]}]},
            ["a/x/one/1 2"],
        ),
        (
            "figures",
            {
                "style": "size",
                "datasets": ["a", "b"],
                "lines": [{"features": "x", "entry": "one", "epsilon": "2"}],
            },
            ["a/x/one/2", "b/x/one/2"],
        ),
        (
            "figures",
            {
                "style": "settings",
                "series": [{"dataset": "a", "features": "x", "epsilon": "1", "entries": ["one", "two"]}],
            },
            ["a/x/one/1", "a/x/two/1"],
        ),
        (
            "figures",
            {
                "style": "settings",
                "series": [{"dataset": "b", "epsilon": "2", "cells": [{"features": "y", "entry": "two", "x": 5}]}],
            },
            ["b/y/two/2"],
        ),
        (
            "figures",
            {"dataset": "a", "features": ["x"], "entries": ["one"], "epsilons": ["1"], "gain_over": "y"},
            ["a/x/one/1", "a/y/one/1"],
        ),
        ("figures", {"style": "noise", "noise": {}}, []),
    ],
)
def test_the_cells_of_a_table_or_figure(kind, spec, expected):
    found = style_of(kind, spec).cells(spec, study_of(load(copy.deepcopy(STUDY))))
    wanted = [
        f"{place}/eps={epsilon}"
        for place, _, epsilons in (text.rpartition("/") for text in expected)
        for epsilon in epsilons.split()
    ]
    assert sorted(found) == sorted(wanted)


def test_a_name_that_is_neither_table_nor_figure_is_refused():
    with pytest.raises(StudyError, match="only: unknown table or figure 'digit'"):
        load(yaml.safe_load((Path(__file__).parents[3] / "config.yaml").read_text()) | {"only": "digit"})
