"""The tables of tramer2021's claims and of parameters, from a study on disk."""

import copy
import csv
import dataclasses
import math

import pyarrow as pa
import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json, write_table
from dpstudy.evaluation.summary import cell_name, read_summary, write_summary
from dpstudy.tables.build import build_table
from dpstudy.tables.claims.finding import OPEN
from dpstudy.tables.claims.gather import gather
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.judge import judge_study
from dpstudy.tables.results import Results
from dpstudy.tables.styles.tables import claims, parameters
from dpstudy.tuning.trials import Trial, write_trials

CELLS = {  # (data set, features, entry, epsilon) -> accuracy, records, guarantee, certified epsilon
    ("mnist", "sn", "sgd", "2"): (98.4, 60_000, "proved", 1.99),
    ("mnist", "sn", "sgd", "3"): (98.8, 60_000, "proved", 2.99),
    ("mnist", "sn", "sgd-wide", "3"): (98.9, 60_000, "proved", 2.99),
    ("mnist", "sn", "shuffle", "3"): (98.7, 60_000, "proved", 9.0),
    ("mnist", "sn", "loose", "3"): (99.9, 60_000, "proved", 3.01),
    ("mnist", "sn", "sgd", "inf"): (99.2, 60_000, "none", None),
    ("small", "sn", "sgd", "3"): (97.0, 5_000, "proved", 2.99),
}
AXES = {"datasets": ["mnist", "small"], "features": ["sn"], "entries": ["sgd", "sgd-wide", "shuffle", "loose", "other"]}
AXES |= {"epsilons": ["2", "3", "inf"]}
SPEC = {
    "style": "claims",
    "paper": "tramer2021",
    "caption": "Claims",
    "counterparts": {"mnist": {"dataset": "MNIST"}, "small": {"dataset": "MNIST"}},
    "roles": {
        "mnist": {
            "linear": [{"features": "sn", "entry": "sgd"}, {"features": "sn", "entry": "sgd-wide"}],
            "linear-shuffle": {"features": "sn", "entry": "shuffle"},
            "cnn": {"features": "sn", "entry": "loose"},
            "nonprivate-linear": {"features": "sn", "entry": "sgd"},
        },
        "small": {"linear": {"features": "sn", "entry": "sgd"}},
    },
    "searches": [
        {
            "label": "linear",
            "dataset": "mnist",
            "epsilon": "3",
            "cells": [{"features": "sn", "entry": "sgd", "label": "DN 8"}],
        },
    ],
}
MODELS = {
    "style": "parameters",
    "caption": "Sizes",
    "dataset": "mnist",
    "models": [
        {"features": "sn", "entry": "sgd", "published": "ScatterNet+CNN (MNIST and Fashion-MNIST)"},
        {"features": "sn", "entry": "shuffle", "label": "Other & more"},
    ],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder, cells = tmp_path_factory.mktemp("claims"), []
    ledgers, metrics, curves = {}, {}, {}
    for (dataset, features, entry, epsilon), (mean, n, guarantee, certified) in CELLS.items():
        cell = {"dataset": dataset, "features": features, "entry": entry, "epsilon": epsilon}
        name = cell_name(**cell)
        seeds = [{"seed": s, "split": "test", "top1": mean + d} for s, d in enumerate((-0.1, 0.0, 0.1))]
        content = {"method": "m", "classes": 10, "parameters": 33_066, "seeds": seeds, "made_by": {}}
        content["hyperparameters"] = {"sampling_rate": 0.01}
        write_json(folder / name / "metrics.json", cell | content)
        write_json(folder / name / "ledger.json", {"n": n, "guarantee": guarantee, "epsilon": certified, "delta": 1e-5})
        rows = [
            (seed, step, step / 100 if certified else None, metric, mean - 200 / step + 0.1 * (seed - 1))
            for seed in (0, 1, 2)
            for step in (100, 200)
            for metric in ("top1", "top5")
        ]
        columns = zip(("seed", "step", "epsilon_spent", "metric", "value"), zip(*rows, strict=True), strict=True)
        write_table(folder / name / "curve.parquet", pa.table({key: list(column) for key, column in columns}))
        ledgers[name], metrics[name] = folder / name / "ledger.json", folder / name / "metrics.json"
        curves[name] = folder / name / "curve.parquet"
        cells.append(cell | {"metrics": metrics[name]})
    write_summary(cells, folder / "summary.csv", folder / "summary.parquet")
    space = {"epochs": {"choices": [15, 40]}}
    found = [Trial({"epochs": 15}, 97.0, 1.0, None), Trial({"epochs": 40}, 98.5, 1.0, None)]
    write_trials(folder / "trials.parquet", [*found, Trial({"epochs": 40}, 0.0, 1.0, "diverged")], space)
    trials = {"mnist/sn/sgd/eps=3": folder / "trials.parquet"}
    return Results(
        AXES, read_summary(folder / "summary.parquet"), ledgers=ledgers, metrics=metrics, trials=trials, curves=curves
    )


def test_evidence_from_a_study(results):
    ours = gather("t", SPEC, results).ours
    linear = ours.get("MNIST", "linear", 3.0)
    assert linear.mean == pytest.approx(98.9) and linear.error == pytest.approx(0.1 / math.sqrt(3))  # the better entry
    assert ours.get("MNIST", "cnn", 3.0) is None  # certified above its target
    assert ours.get("MNIST", "linear-shuffle", 3.0).mean == pytest.approx(98.7)  # a control is compared all the same
    assert ours.get("MNIST", "nonprivate-linear", math.inf).mean == pytest.approx(99.2)
    assert ours.get("MNIST", "prior", 1.2) == Value(96.6) and ours.get("CIFAR-10", "prior", 7.53) is None
    assert {run.n for run in ours.runs} == {60_000}
    assert [(run.n, run.accuracy.mean) for run in ours.of_any_size("linear") if run.n < 60_000] == [
        (5_000, pytest.approx(97.0))
    ]
    curve = next(run.curve for run in ours.of_role("linear") if run.epsilon == 2.0)
    assert [(point.epochs, point.spent) for point in curve] == [(1.0, 1.0), (2.0, 2.0)]
    assert curve[0].accuracy.mean == pytest.approx(96.4) and curve[0].accuracy.error == pytest.approx(
        0.1 / math.sqrt(3)
    )
    search = ours.searches["MNIST", "linear"]
    assert (search.statistics["min"], search.statistics["max"], len(search.trials)) == (97.0, 98.5, 2)
    assert [trial["label"] for trial in search.trials] == ["DN 8", "DN 8"]  # Figure 8's normalisation


def test_cells_and_searches_of_other_classes_are_no_evidence(results, tmp_path):
    metrics = dict(results.metrics)
    for name, path in results.metrics.items():
        if name.startswith("mnist/"):
            metrics[name] = tmp_path / name / "metrics.json"
            write_json(metrics[name], read_json(path) | {"classes": 5})
    study = dataclasses.replace(results, metrics=metrics)
    found = gather("t", SPEC, study)
    assert {run.n for run in found.ours.runs} == {5_000} and not found.ours.searches
    assert found.left_out == ("Not judged by the cells of mnist, which tell 5 classes apart: MNIST has 10",)
    undecided = [one.here for _, one in judge_study("t", SPEC, study) if one.verdict == OPEN]
    assert undecided and all(here.endswith(found.left_out[0]) for here in undecided)


def test_the_claims_table_of_tramer2021(results, tmp_path):
    build_table("t", SPEC, results, tmp_path / "t.tex", tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 46 and rows[0]["section"] == "Abstract; 3.2; Figure 1"
    found = {row["claim"].split(":")[0]: row for row in rows}
    pate = found["MNIST"]
    assert (pate["verdict"], pate["decided_by"]) == ("holds", "these cells") and "−0.10 ± 0.12" in pate["here"]
    shuffled = found["Poisson sampling and random shuffling give similar accuracy."]
    assert (shuffled["verdict"], shuffled["decided_by"]) == ("holds", "these cells")
    assert r"\begin{longtable}" in (tmp_path / "t.tex").read_text()
    assert "three data sets" in claims.STYLE.table("t", SPEC, results).sheets[0].notes[-1]
    few = claims.STYLE.table("t", SPEC | {"sections": ["3.2, Table 3"]}, results).sheets[0]
    assert len(few.blocks[0]) == 3 and few.notes[0].startswith("Of 3 claims")


def test_the_table_of_parameters(results, tmp_path):
    build_table("t", MODELS, results, tmp_path / "t.tex", tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["model"], first["parameters"], first["published"]) == ("sgd", "33066", "33K")
    assert first["as_printed_in_layers"] == "20778"
    assert (second["model"], second["published"], second["as_printed_in_layers"]) == ("Other & more", "", "")
    sheet = parameters.STYLE.table("t", MODELS, results).sheets[0]
    assert sheet.blocks[0][0] == ("sgd", "33,066", "33K", "20,778") and sheet.blocks[0][1][2:] == ("–", "–")
    assert "33,066" in sheet.notes[1] and "187,210" in sheet.notes[1]
    assert r"Other \& more" in (tmp_path / "t.tex").read_text()


def test_the_tables_compile(results, tmp_path, compiles):
    for name, spec in (("claims", SPEC), ("sizes", MODELS)):
        build_table(name, spec, results, tmp_path / f"{name}.tex", tmp_path / f"{name}.csv")
    compiles(tmp_path, "claims", "sizes", packages="booktabs,longtable")


def test_models_without_cells_are_named(results, tmp_path):
    spec = MODELS | {"models": [{"features": "sn", "entry": "other"}]}
    with pytest.raises(StudyError, match="table t: the study has no cell of mnist/sn/other"):
        build_table("t", spec, results, tmp_path / "t.tex", tmp_path / "t.csv")


def test_two_searches_of_one_model_are_refused(results):
    with pytest.raises(StudyError, match="two searches stand for the linear model on MNIST; pool their cells"):
        gather("t", SPEC | {"searches": SPEC["searches"] * 2}, results)


DIGITS = {"reader": "digits", "delta": "1e-4", "splits": {"test": 0.2, "validation": 0.1}}
CONFIG = {
    "study": "claims",
    "datasets": {"mnist": DIGITS, "small": DIGITS},
    "features": {"sn": {"extractor": "pixels"}},
    "methods": {entry: {"method": "least_squares"} for entry in ("sgd-wide", "shuffle", "loose")}
    | {
        "sgd": {
            "method": "first_order",
            "clipping_norm": 1.0,
            "steps": 2,
            "tuning": {"trials": 2, "space": {"learning_rate": {"low": 0.1, "high": 1.0}}},
        }
    },
    "epsilons": ["3"],
    "seeds": [0],
}

CEILING = {"style": "ceiling", "paper": "tramer2021"}
PLACE = {"features": "sn", "entry": "sgd"}


def linear(**place):
    return {"roles": {"mnist": {"linear": PLACE | place}}}


@pytest.mark.parametrize(
    ("spec", "change", "message"),
    [
        (SPEC, {"sections": ["3.3"]}, "tables.t.sections: unknown section or claim of tramer2021 '3.3'"),
        (SPEC, {"methods": {"DP-LS": "loose"}}, "tables.t.methods: this key goes with the paper mehta2023, not with"),
        (SPEC, {"roles": {"minst": SPEC["roles"]["small"]}}, "tables.t.roles: unknown data set 'minst'"),
        (SPEC, {"roles": {"mnist": {"linaer": PLACE}}}, "role of tramer2021 'linaer' (did"),
        (SPEC, linear(entry="sgdd"), "tables.t.roles.mnist.linear.entry: unknown method entry 'sgdd'"),
        (SPEC, linear(features="ns"), "tables.t.roles.mnist.linear.features: unknown feature set 'ns'"),
        (SPEC, {"roles": {"mnist": {"linear": "sgd"}}}, "neither a mapping with 'features', 'entry' nor a list"),
        (SPEC, {"searches": [SPEC["searches"][0] | {"label": "SN"}]}, "searches[0].label: unknown model of tramer2021"),
        (CEILING, {}, "tables.t.paper: the style 'ceiling' knows mehta2023 only, not tramer2021"),
        (MODELS, {"models": None}, "tables.t: the key 'models' is missing; the style 'parameters' needs it"),
        (MODELS, {"models": [{"features": "sn", "entry": "x"}]}, "tables.t.models[0].entry: unknown method entry 'x'"),
        (MODELS, {"models": [PLACE | {"published": "CNN"}]}, "unknown model of tramer2021's Table 4 'CNN'"),
    ],
)
def test_mistakes_in_the_specs_are_named(spec, change, message):
    spec = {key: value for key, value in (copy.deepcopy(spec) | change).items() if value is not None}
    with pytest.raises(StudyError) as caught:
        load(CONFIG | {"tables": {"t": spec}})
    assert message in str(caught.value)


def test_the_specs_load():
    loaded = load(CONFIG | {"tables": {"claims": SPEC, "sizes": MODELS}})
    assert loaded["tables"]["claims"]["roles"]["small"]["linear"]["entry"] == "sgd"
