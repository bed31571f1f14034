"""Accuracy against the number of records: what is drawn is what summaries and ledgers hold."""

import csv
import math

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.evaluation.summary import read_summary, write_summary
from dpstudy.tables.build import build_figure
from dpstudy.tables.results import Results

SIZES = {"small": 10_000, "whole": 50_000, "odd": 12_345}
LINES = [
    {"features": "scatternet", "entry": "linear", "epsilon": "3", "label": "ScatterNet + linear"},
    {"features": "pixels", "entry": "cnn", "epsilon": "3"},
]
AXES = {"features": ["pixels", "scatternet"], "entries": ["other", "cnn", "linear"]}
SPEC = {"style": "size", "title": "CIFAR-10", "datasets": list(SIZES), "lines": LINES}


@pytest.fixture
def files(tmp_path):
    """(summary, ledgers, metrics) of three data sets and two entries, at two epsilons, over two seeds."""
    cells, ledgers, metrics = [], {}, {}
    for dataset, n in SIZES.items():
        for line in LINES:
            for epsilon in ("1", "3"):
                cell = {"dataset": dataset, "features": line["features"], "entry": line["entry"], "epsilon": epsilon}
                path = tmp_path / "cells" / "/".join(cell.values())
                mean = n / 1000 + float(epsilon) + (10 if line["entry"] == "cnn" else 0)
                seeds = [{"seed": s, "split": "test", "top1": mean + d} for s, d in enumerate((-1, 1))]
                write_json(path / "metrics.json", cell | {"method": "m", "classes": 10, "seeds": seeds, "made_by": {}})
                write_json(path / "ledger.json", {"n": n, "delta": 0.5 / n, "epsilon": 2.99})
                name = f"{dataset}/{line['features']}/{line['entry']}/eps={epsilon}"
                ledgers[name], metrics[name] = path / "ledger.json", path / "metrics.json"
                cells.append(cell | {"metrics": path / "metrics.json"})
    write_summary(cells, tmp_path / "summary.csv", tmp_path / "summary.parquet")
    return tmp_path / "summary.parquet", ledgers, metrics


def build(files, folder, name="f", **changes):
    paths = [folder / f"{name}.{kind}" for kind in ("pdf", "png", "csv", "svg")]
    build_figure(
        name, SPEC | changes, Results(AXES, read_summary(files[0]), ledgers=files[1], metrics=files[2]), *paths
    )
    with open(paths[2], newline="") as file:
        return [path.read_bytes() for path in paths], list(csv.DictReader(file))


def test_each_line_has_the_cells_of_its_data_sets_by_size(files, tmp_path):
    _, rows = build(files, tmp_path)
    assert [(row["line"], row["n"]) for row in rows] == [
        (label, str(n)) for label in ("ScatterNet + linear", "cnn, pixels") for n in (10_000, 12_345, 50_000)
    ]
    last = rows[-1]
    assert (last["dataset"], last["epsilon"], last["certified_epsilon"], last["seeds"]) == ("whole", "3", "2.99", "2")
    assert float(last["delta"]) == 1e-5
    assert float(last["mean"]) == pytest.approx(63) and float(last["std"]) == pytest.approx(2**0.5)


def test_bars_are_intervals_where_cells_have_some(files, tmp_path):
    path = files[2]["whole/pixels/cnn/eps=3"]
    content = read_json(path)
    for row in content["seeds"]:
        row |= {"top1_low": row["top1"] - 2, "top1_high": row["top1"] + 3}
    write_json(path, content)
    _, rows = build(files, tmp_path)
    *without, last = [(row["low"], row["high"]) for row in rows]
    spread = 12.706205 * 2**0.5 / 2**0.5  # Student's t with one degree of freedom, two seeds
    assert set(without) == {("", "")}
    assert [float(end) for end in last] == pytest.approx([63 - math.hypot(2, spread), 63 + math.hypot(3, spread)])


def test_what_is_claimed_and_not_proved_is_marked(files, tmp_path, monkeypatch):
    monkeypatch.setitem(AXES, "claimed", ["cnn"])
    _, rows = build(files, tmp_path)
    assert {row["line"] for row in rows} == {"ScatterNet + linear", "cnn, pixels (ε claimed)"}


def test_a_second_build_gives_the_same_bytes(files, tmp_path):
    assert build(files, tmp_path, "a")[0] == build(files, tmp_path, "b")[0]


def test_what_cannot_be_drawn_is_named(files, tmp_path):
    with pytest.raises(StudyError, match="metric 'auc': no cell has it"):
        build(files, tmp_path, metric="auc")
    with pytest.raises(StudyError, match="figure f: the cell small/pixels/linear/eps=3 has no 'top1'"):
        build(files, tmp_path, lines=[LINES[0] | {"features": "pixels"}])
    path = files[1]["odd/scatternet/linear/eps=3"]
    write_json(path, read_json(path) | {"n": 10_000})
    with pytest.raises(StudyError, match="figure f: the data sets 'small' and 'odd' both have 10000 records"):
        build(files, tmp_path)
