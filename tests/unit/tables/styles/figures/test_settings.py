"""Figures of settings: what is drawn of each cell is what its metrics.json has."""

import csv

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.tables.build import build_figure
from dpstudy.tables.palette import COLOURS, MARKERS
from dpstudy.tables.results import Results
from dpstudy.tables.styles.figures.settings import _points, draw

BATCHES = {"batch-256": (256, 1250, 0.25), "batch-1024": (1024, 2500, 1.0), "batch-4096": (4096, 2500, 4.0)}
COPIES = {"copies-0": 0, "copies-1": 1, "copies-16": 16}
PANELS = [
    {"x": "batch_size", "y": "top1"},
    {"x": "batch_size", "y": "steps", "title": "optimal steps"},
    {"x": "batch_size", "y": "epochs"},
    {"x": "batch_size", "y": "learning_rate"},
]
SERIES = [{"label": "WRN", "dataset": "cifar10", "features": "images", "epsilon": "8", "entries": [*BATCHES][::-1]}]
SPEC = {"style": "settings", "panels": PANELS, "series": SERIES, "title": "CIFAR-10"}


@pytest.fixture
def metrics(tmp_path):
    """Cell -> metrics.json, over two seeds; 10,000 records."""
    found = {}

    def cell(entry, accuracy, **settings):
        path = tmp_path / entry / "metrics.json"
        seeds = [{"seed": s, "split": "test", "top1": accuracy + d, "train_top1": 99.0} for s, d in enumerate((-1, 1))]
        write_json(path, {"classes": 10, "seeds": seeds, "hyperparameters": settings})
        found[f"cifar10/images/{entry}/eps=8"] = path

    for number, (entry, (batch, steps, rate)) in enumerate(BATCHES.items()):
        facts = {"batch_size": batch, "steps": steps, "learning_rate": rate, "sampling_rate": batch / 10_000}
        cell(entry, 60.0 + number, **facts)
    for entry, copies in COPIES.items():
        cell(entry, 70.0 + copies, **({"augmentation": {"multiplicity": copies}} if copies else {}))
    return found


def build(metrics, folder, name="f", **changes):
    paths = [folder / f"{name}.{kind}" for kind in ("pdf", "png", "csv", "svg")]
    build_figure(name, SPEC | changes, Results({}, [], metrics=metrics), *paths)
    with open(paths[2], newline="") as file:
        return [path.read_bytes() for path in paths], list(csv.DictReader(file))


def test_each_panel_has_what_the_cells_say_in_the_order_of_x(metrics, tmp_path):
    _, rows = build(metrics, tmp_path)
    assert [row["entry"] for row in rows] == 4 * list(BATCHES)
    accuracy, steps, epochs, rate = (rows[start : start + 3] for start in (0, 3, 6, 9))
    assert [float(row["x_value"]) for row in accuracy] == [256, 1024, 4096]
    assert [float(row["y_value"]) for row in accuracy] == [60, 61, 62]
    assert {(round(float(row["std"]), 3), row["seeds"]) for row in accuracy} == {(1.414, "2")}
    assert [float(row["y_value"]) for row in steps] == [1250, 2500, 2500] and steps[0]["panel"] == "optimal steps"
    assert [float(row["y_value"]) for row in epochs] == [32, 256, 1024] and epochs[0]["panel"] == "(c)"
    assert [(float(row["y_value"]), row["std"]) for row in rate] == [(0.25, ""), (1, ""), (4, "")]


def test_no_augmentation_stands_before_a_single_copy(metrics, tmp_path):
    series = [SERIES[0] | {"entries": [*COPIES]}]
    panels = [{"x": "copies", "y": "top1"}, {"x": "copies", "y": "train_top1"}]
    (pdf, *_), rows = build(metrics, tmp_path, series=series, panels=panels)
    assert [float(row["x_value"]) for row in rows] == 2 * [0, 1, 16]
    assert [float(row["y_value"]) for row in rows] == [70, 71, 86, 99, 99, 99] and pdf.startswith(b"%PDF")


def test_cells_that_say_where_they_stand_are_drawn_there(metrics, tmp_path):
    places = {"batch-256": 200, "batch-1024": 50, "batch-4096": 101}
    cells = [{"features": "images", "entry": entry, "x": x} for entry, x in places.items()]
    series = [{"label": "NF-ResNets", "dataset": "cifar10", "epsilon": "8", "cells": cells}]
    _, rows = build(metrics, tmp_path, series=series, panels=[{"x": "depth", "y": "top1"}])
    assert [(row["entry"], row["features"], float(row["x_value"]), float(row["y_value"])) for row in rows] == [
        ("batch-1024", "images", 50, 61),
        ("batch-4096", "images", 101, 62),
        ("batch-256", "images", 200, 60),
    ]
    assert {row["x"] for row in rows} == {"depth"}


def test_the_legend_names_each_line_by_its_own_look(metrics):
    """Bars of a spread have caps, which matplotlib counts among an axis' lines."""
    series = [
        {"label": f"line {number}", "dataset": "cifar10", "features": "images", "epsilon": "8", "entries": entries}
        for number, entries in enumerate((["batch-256", "batch-1024"], ["batch-1024", "batch-4096"]))
    ]
    spec = SPEC | {"series": series}
    panels = [[_points("f", panel, line, metrics) for line in series] for panel in spec["panels"]]
    (legend,) = draw(spec, panels).legends
    looks = [(line.get_color(), line.get_marker()) for line in legend.get_lines()]
    assert looks == [(COLOURS[0], MARKERS[0]), (COLOURS[1], MARKERS[1])]


def test_of_a_single_seed_the_bar_is_the_interval_of_the_test_records(metrics, tmp_path):
    for path in metrics.values():
        seed = {"seed": 0, "split": "test", "top1": 60.0, "top1_low": 57.0, "top1_high": 64.0}
        write_json(path, read_json(path) | {"seeds": [seed]})
    _, rows = build(metrics, tmp_path, panels=PANELS[:2])
    assert [(row["y"], row["low"], row["high"]) for row in rows[2:4]] == [("top1", "57.0", "64.0"), ("steps", "", "")]


def test_points_of_two_lines_stand_aside_and_those_of_one_at_their_place(metrics):
    def drawn(*series):
        panels = [[_points("f", PANELS[0], line, metrics) for line in series]]
        axis = draw(SPEC | {"series": series, "panels": PANELS[:1]}, panels).axes[0]
        return [list(line.get_xdata()) for line in axis.get_lines() if len(line.get_xdata()) == 3][::3]

    assert drawn(SERIES[0])[0] == [256, 1024, 4096]
    first, second = drawn(SERIES[0], SERIES[0] | {"label": "again"})
    assert [one * other for one, other in zip(first, second, strict=True)] == pytest.approx([256**2, 1024**2, 4096**2])
    assert 1.01 < second[0] / first[0] < 1.1


def test_a_second_build_gives_the_same_bytes(metrics, tmp_path):
    assert build(metrics, tmp_path, "a")[0] == build(metrics, tmp_path, "b")[0]


@pytest.mark.parametrize(
    ("panel", "sentence"),
    [
        ({"x": "momentum", "y": "top1"}, "has no number 'momentum'; it has batch_size, steps"),
        ({"x": "batch_size", "y": "auc"}, "has no 'auc'; name it in evaluation.metrics"),
    ],
)
def test_what_a_cell_does_not_have_is_named(metrics, tmp_path, panel, sentence):
    with pytest.raises(StudyError, match=f"figure f: the cell cifar10/images/batch-4096/eps=8 {sentence}"):
        build(metrics, tmp_path, panels=[panel])
