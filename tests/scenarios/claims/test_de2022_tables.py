"""The table of de2022's claims, from a study on disk, and mistakes in its spec."""

import copy
import csv
import math

import pyarrow as pa
import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json, write_table
from dpstudy.evaluation.summary import cell_name, read_summary, write_summary
from dpstudy.tables.build import build_table
from dpstudy.tables.claims.de2022_printed import CITED
from dpstudy.tables.claims.gather import gather
from dpstudy.tables.results import Results
from dpstudy.tables.styles.tables import claims

SMALL_K, LARGE_K = {"augmentation": {"multiplicity": 1}}, {"augmentation": {"multiplicity": 16}}
CELLS = {  # (data set, entry, epsilon) -> accuracy, records, certified epsilon, hyper-parameters
    ("cifar10", "deep", "8"): (81.4, 50_000, 7.99, {}),
    ("cifar10", "shallow", "8"): (79.5, 50_000, 7.99, {}),
    ("cifar10", "loose", "8"): (90.0, 50_000, 8.01, {}),
    ("cifar10-tuning", "plain", "8"): (70.0, 45_000, 7.99, {}),
    ("cifar10-tuning", "one-copy", "8"): (66.0, 45_000, 7.99, SMALL_K),
    ("cifar10-tuning", "copies", "8"): (76.0, 45_000, 7.99, LARGE_K),
    ("tiny", "shallow", "8"): (50.0, 4_000, 7.99, {}),
}
ENTRIES = ["deep", "shallow", "loose", "plain", "one-copy", "copies"]
AXES = {"datasets": ["cifar10", "cifar10-tuning", "tiny"], "features": ["pixels"], "entries": ENTRIES}
AXES |= {"epsilons": ["8"]}


def place(entry):
    return {"features": "pixels", "entry": entry}


SPEC = {
    "style": "claims",
    "paper": "de2022",
    "caption": "Claims",
    "counterparts": {name: {"dataset": "CIFAR-10"} for name in AXES["datasets"]},
    "roles": {
        "cifar10": {"wrn-40-4": [place("deep"), place("loose")], "wrn-16-4": place("shallow")},
        "cifar10-tuning": {"multiplicity": [place("plain"), place("one-copy"), place("copies")]},
        "tiny": {"wrn-16-4": place("shallow")},
    },
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder, cells = tmp_path_factory.mktemp("de2022"), []
    ledgers, metrics, curves = {}, {}, {}
    for (dataset, entry, epsilon), (mean, n, certified, settings) in CELLS.items():
        cell = {"dataset": dataset, "features": "pixels", "entry": entry, "epsilon": epsilon}
        name = cell_name(**cell)
        seeds = [{"seed": s, "split": "test", "top1": mean + d} for s, d in enumerate((-0.1, 0.0, 0.1))]
        content = {"method": "m", "classes": 10, "parameters": 1000, "seeds": seeds, "made_by": {}}
        content |= {"hyperparameters": {"sampling_rate": 0.01} | settings, "tuned_on": "beforehand"}
        write_json(folder / name / "metrics.json", cell | content)
        ledger = {"n": n, "guarantee": "proved", "epsilon": certified, "delta": 1e-5, "events": [], "not_accounted": []}
        write_json(folder / name / "ledger.json", ledger)
        columns = {"seed": [0], "step": [100], "epsilon_spent": [certified], "metric": ["top1"], "value": [mean]}
        write_table(folder / name / "curve.parquet", pa.table(columns))
        ledgers[name], metrics[name] = folder / name / "ledger.json", folder / name / "metrics.json"
        curves[name] = folder / name / "curve.parquet"
        cells.append(cell | {"metrics": metrics[name]})
    write_summary(cells, folder / "summary.csv", folder / "summary.parquet")
    return Results(AXES, read_summary(folder / "summary.parquet"), ledgers=ledgers, metrics=metrics, curves=curves)


def test_evidence_from_a_study(results):
    found = gather("t", SPEC, results)
    ours = found.ours
    assert ours.get("CIFAR-10", "wrn-40-4", 8.0).mean == pytest.approx(81.4)  # the other is certified above its target
    assert ours.get("CIFAR-10", "wrn-16-4", 8.0).error == pytest.approx(0.1 / math.sqrt(3))
    assert {run.n for run in ours.runs} == {50_000, 45_000}  # both are sizes of the paper
    assert [(run.n, run.accuracy.mean) for run in ours.resized] == [(4_000, pytest.approx(50.0))]
    assert ours.get("CIFAR-10", "prior", 7.5).mean == 71.7 and ours.get("ImageNet-1k", "prior", 13.2) is None
    assert {row["paper"] for row in (*found.rows, *found.hyperparameters)} == {"de2022"}


def test_a_study_of_few_records_is_judged_on_those(results):
    tiny = gather("t", SPEC | {"roles": {"tiny": SPEC["roles"]["tiny"]}}, results).ours
    assert tiny.get("CIFAR-10", "wrn-16-4", 8.0).mean == pytest.approx(50.0) and not tiny.resized
    assert not any(role in CITED for _, role, _ in tiny.values)  # which are of all records
    sheet = claims.STYLE.table("t", SPEC | {"roles": {"tiny": {"wrn-40-4": place("shallow")}}}, results).sheets[0]
    assert sheet.blocks[0][0][1] == "cannot be decided here" and "all records" in sheet.blocks[0][0][3]


def test_the_claims_table_of_de2022(results, tmp_path):
    build_table("t", SPEC, results, tmp_path / "t.tex", tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 49
    found = {(row["section"], row["claim"].split(" ")[0]): row for row in rows}
    for key in (("Abstract; 1; 3.2", "CIFAR-10"), ("Figure 3; 3.1", "Figure")):
        assert (found[key]["verdict"], found[key]["decided_by"]) == ("holds", "these cells")
    assert "+9.70" in found["Abstract; 1; 3.2", "CIFAR-10"]["here"]
    assert r"\begin{longtable}" in (tmp_path / "t.tex").read_text()
    sheet = claims.STYLE.table("t", SPEC | {"sections": ["A.2"]}, results).sheets[0]
    assert sheet.notes[0].startswith("Of 5 claims 1 hold, 1 do not hold, 3 cannot")
    assert "Accuracy on training records is private" in sheet.notes[-1]


def test_the_table_compiles(results, tmp_path, compiles):
    build_table("claims", SPEC, results, tmp_path / "claims.tex", tmp_path / "claims.csv")
    compiles(tmp_path, "claims", packages="booktabs,longtable")


DIGITS = {"reader": "digits", "delta": "1e-4", "splits": {"test": 0.2, "validation": 0.1}}
CONFIG = {
    "study": "claims",
    "datasets": {name: DIGITS for name in AXES["datasets"]},
    "features": {"pixels": {"extractor": "pixels"}},
    "methods": {entry: {"method": "least_squares"} for entry in ENTRIES},
    "epsilons": ["8"],
    "seeds": [0],
}
SEARCH = {"label": "linear", "dataset": "cifar10", "epsilon": "8", "cells": [place("deep")]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sections": ["9.9"]}, "tables.t.sections: unknown section or claim of de2022 '9.9'"),
        ({"roles": {"cifar10": {"linear": place("deep")}}}, "role of de2022 'linear'"),
        ({"roles": {"cifar10": {"wrn-40-4": place("dep")}}}, "tables.t.roles.cifar10.wrn-40-4.entry: unknown"),
        ({"methods": {"DP-LS": "deep"}}, "tables.t.methods: this key goes with the paper mehta2023, not with de2022"),
        ({"searches": [SEARCH]}, "tables.t.searches: this key goes with the paper tramer2021, not with de2022"),
        (
            {"paper": "mehta2023", "methods": {"DP-LS": "deep"}},
            "goes with the paper tramer2021 or de2022 or anon_smoothing, not with",
        ),
        ({"paper": "de2023"}, "de2022"),
    ],
)
def test_mistakes_in_the_spec_are_named(change, message):
    with pytest.raises(StudyError) as caught:
        load(CONFIG | {"tables": {"t": copy.deepcopy(SPEC) | change}})
    assert message in str(caught.value)


def test_the_spec_loads():
    loaded = load(CONFIG | {"tables": {"claims": SPEC}})
    assert loaded["tables"]["claims"]["roles"]["cifar10"]["wrn-16-4"]["entry"] == "shallow"
