"""Means over repeated splits of the same records."""

import csv

import numpy as np
import pytest
from scipy.stats import t

from dpstudy.config.loading import load
from dpstudy.core.files import write_json
from dpstudy.evaluation.summary import cell_name, read_summary, write_summary
from dpstudy.tables.build import build_table
from dpstudy.tables.results import Results
from dpstudy.tables.styles.tables.draws import STYLE
from tests.unit.config.selecting import config, refused
from tests.unit.tables.conftest import Study

SPEC = {"style": "draws", "metric": "top1", "rows": [{"features": "pixels", "entry": "ls", "label": "LS"}]}
VALUES = {"a": [80.0, 82.0], "b": [85.0, 85.0], "c": [90.0, 86.0]}
AXES = {"datasets": list(VALUES), "features": ["pixels"], "entries": ["ls"], "epsilons": ["1"]}


@pytest.fixture
def drawn(tmp_path):
    cells, ledgers, metrics, splits = [], {}, {}, {}
    for number, (dataset, values) in enumerate(VALUES.items()):
        cell = {"dataset": dataset, "features": "pixels", "entry": "ls", "epsilon": "1"}
        name, folder = cell_name(**cell), tmp_path / dataset
        seeds = [{"seed": seed, "split": "test", "top1": value} for seed, value in enumerate(values)]
        write_json(folder / "metrics.json", cell | {"method": "m", "classes": 10, "seeds": seeds, "made_by": {}})
        write_json(folder / "ledger.json", Study.ledger("1", 0.9 + number / 100))
        metrics[name], ledgers[name] = folder / "metrics.json", folder / "ledger.json"
        cells.append(cell | {"metrics": folder / "metrics.json"})
        for split, subjects in {"train": 60, "validation": 10, "test": 30}.items():
            write_json(folder / f"{split}.json", {"rows": 7 * subjects + number, "subjects": subjects, "classes": []})
        splits[dataset] = {split: folder / f"{split}.json" for split in ("train", "validation", "test")}
    write_summary(cells, tmp_path / "summary.csv", tmp_path / "summary.parquet")
    return Results(AXES, read_summary(tmp_path / "summary.parquet"), ledgers=ledgers, metrics=metrics, splits=splits)


def test_a_cell_is_the_mean_over_splits_and_its_interval_knows_how_many_persons_they_share(drawn, tmp_path):
    build_table("t", SPEC, drawn, tmp_path / "t.tex", tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    means = np.array([81, 85, 88])
    assert float(row["mean"]) == pytest.approx(means.mean()) and float(row["std"]) == pytest.approx(means.std(ddof=1))
    single = means.var(ddof=1) + np.mean([2.0, 0.0, 8.0]) / 2  # of the means, and of what a second seed took away
    half = t.ppf(0.975, 2) * (single * (1 / 3 + 1.5 * 30 / 70)) ** 0.5
    assert [float(row["low"]), float(row["high"])] == pytest.approx(
        [means.mean() - half, min(100, means.mean() + half)]
    )
    assert (row["draws"], row["seeds"], row["certified_epsilon"], row["guarantee"]) == ("3", "2", "0.92", "proved")
    (sheet,) = STYLE.table("t", SPEC, drawn).sheets
    assert sheet.header == ("Method", "ε = 1") and sheet.blocks[0] == (("certified ε at most, of one draw", "0.92"),)
    assert sheet.blocks[1][0][0] == "LS" and sheet.blocks[1][1][0] == "interval"
    assert "over 3 splits of the same records" in sheet.notes[0] and "a: n = 60,000" in sheet.notes[2]


def test_where_a_split_has_no_cell_the_others_are_told(drawn):
    drawn.summary[:] = [row for row in drawn.summary if row["dataset"] != "b"]
    (row,) = STYLE.table("t", SPEC, drawn).rows
    assert row[5] == 2
    drawn.summary.clear()
    assert list(STYLE.table("t", SPEC, drawn).rows) == []


def repeated(**changes):
    study = config({"t": SPEC | changes.pop("spec", {})})
    one = study["datasets"]["digits"]
    two = one | {"splits": {"test": 0.2, "draw": 1}} | changes
    study["datasets"] = {"one": one, "two": two}
    return study


def test_what_is_no_repeated_split_is_refused():
    assert load(repeated())["tables"]["t"]["style"] == "draws"
    refused(repeated(delta="1e-5"), "*tables.t.datasets: 'two' differs from 'one' in more than splits.draw")
    refused(repeated(splits={"test": 0.2}), "*tables.t.datasets: 'two' has the splits.draw of another; *")
    refused(repeated(splits={"test": 0.2, "draw": -1}), "*draw*")
    refused(repeated(spec={"datasets": ["one"]}), "*tables.t.datasets: the style 'draws' takes two or more*")
