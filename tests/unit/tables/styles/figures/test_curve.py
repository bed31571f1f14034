"""Figures along training: what is drawn is what the cells' curves hold."""

import csv
import dataclasses
import json

import pyarrow as pa
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_table
from dpstudy.tables.build import build_figure
from dpstudy.tables.palette import COLOURS
from dpstudy.tables.results import Results
from dpstudy.tables.styles.figures.curve import _cited, _read, draw

CELL = {"dataset": "mnist", "features": "pixels", "epsilon": "3"}
LOW, HIGH = CELL | {"entry": "low"}, CELL | {"entry": "high", "label": "high rate"}
AXES = {"features": ["pixels"], "entries": ["other", "low", "high"]}
SPEC = {
    "style": "curve",
    "title": "Convergence",
    "panels": [{"title": "low", "lines": [LOW]}, {"title": "both", "lines": [LOW, HIGH]}],
}


@pytest.fixture
def files(tmp_path):
    """Two cells of two seeds, evaluated after steps 5 and 10 of q = 0.25."""
    curves, metrics = {}, {}
    for entry, offset in (("low", 0.0), ("high", 10.0)):
        folder = tmp_path / f"mnist/pixels/{entry}/eps=3"
        rows = [
            (seed, step, spent, "test", name, offset + step + seed + extra)
            for seed in (0, 1)
            for step, spent in ((5, 1.5), (10, 2.5 if entry == "low" else None))
            for name, extra in (("top1", 0.0), ("top5", 50.0))
        ]
        names = ("seed", "step", "epsilon_spent", "split", "metric", "value")
        folder.mkdir(parents=True)
        write_table(folder / "curve.parquet", pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))))
        (folder / "metrics.json").write_text(json.dumps({"classes": 10, "hyperparameters": {"sampling_rate": 0.25}}))
        cell = f"mnist/pixels/{entry}/eps=3"
        curves[cell], metrics[cell] = folder / "curve.parquet", folder / "metrics.json"
    return Results(AXES, [], metrics=metrics, curves=curves)


def build(files, folder, name, **changes):
    paths = [folder / f"{name}.{kind}" for kind in ("pdf", "png", "csv", "svg")]
    build_figure("f", SPEC | changes, files, *paths)
    with open(paths[2], newline="") as file:
        return [path.read_bytes() for path in paths], list(csv.DictReader(file))


def test_means_over_seeds_at_each_step(files, tmp_path):
    _, rows = build(files, tmp_path, "a")
    assert [(row["panel"], row["line"]) for row in rows] == [("low", "low")] * 2 + [("both", "low")] * 2 + [
        ("both", "high rate")
    ] * 2
    last = rows[-1]
    assert (last["step"], last["seeds"], last["entry"]) == ("10", "2", "high")
    assert float(last["x"]) == 2.5, "epochs: steps times the sampling rate"
    assert float(last["mean"]) == pytest.approx(20.5) and float(last["std"]) == pytest.approx(0.5**0.5)


def test_the_axis_is_what_was_asked_for(files, tmp_path):
    for x, expected in (("step", [5, 10]), ("epoch", [1.25, 2.5]), ("epsilon", [1.5, 2.5])):
        _, rows = build(files, tmp_path, x, x=x, panels=[{"lines": [LOW]}])
        assert [float(row["x"]) for row in rows] == expected
    _, rows = build(files, tmp_path, "top5", metric="top5", panels=[{"lines": [LOW]}])
    assert float(rows[0]["mean"]) == pytest.approx(55.5)


def test_a_second_build_gives_the_same_bytes(files, tmp_path):
    assert build(files, tmp_path, "a")[0] == build(files, tmp_path, "b")[0]


def test_what_cannot_be_drawn_is_named(files, tmp_path):
    with pytest.raises(StudyError, match="mnist/pixels/high/eps=3 adds no noise"):
        build(files, tmp_path, "a", x="epsilon")
    with pytest.raises(StudyError, match="figure f: the curve of mnist/pixels/low/eps=3 has no 'auc'"):
        build(files, tmp_path, "a", metric="auc")


def test_printed_numbers_are_points_without_a_line(files, tmp_path):
    """Each at the epsilon that it is printed at, in grey; the lines keep their colours."""
    printed = {"paper": "de2022", "table": "3", "model": "shallow VGG variant"}
    panels = [{"lines": [LOW | {"label": "ours"}]}]
    changes = {"x": "epsilon", "panels": panels, "cited": [{"label": "VGG", "published": printed}]}
    _, rows = build(files, tmp_path, "a", **changes)
    cited = [row for row in rows if row["line"] == "VGG"]
    assert [(float(row["x"]), float(row["mean"])) for row in cited] == [(1.93, 58.6), (4.21, 66.2), (7.42, 70.1)]
    assert {row["entry"] + row["step"] for row in cited} == {""} and rows[0]["entry"] == "low"
    curves = [_read("f", "", LOW | {"label": "ours"}, "epsilon", "top1", files)]
    curves.append(_cited("", changes["cited"][0], "top1"))
    line, points = draw(curves, SPEC | {"panels": panels, "x": "epsilon"}, AXES).axes[0].get_lines()
    assert points.get_linestyle() == "None" and points.get_color() == COLOURS[-1] != line.get_color()


def test_a_line_like_another_has_its_colour_and_other_dashes(files):
    """And without `like` each has its own colour."""
    lines = [LOW, HIGH | {"like": "low"}]
    curves = [_read("f", "", line, "step", "top1", files) for line in lines]
    (panel,) = draw(curves, {"panels": [{"lines": lines}], "x": "step"}, AXES).axes
    low, high = panel.get_lines()
    assert low.get_color() == high.get_color() == COLOURS[AXES["entries"].index("low")]
    assert (low.get_linestyle(), high.get_linestyle()) == ("-", "--")
    curves[1] = dataclasses.replace(curves[1], like="")
    (panel,) = draw(curves, {"panels": [{"lines": lines}], "x": "step"}, AXES).axes
    low, high = panel.get_lines()
    assert low.get_color() != high.get_color() and low.get_linestyle() == high.get_linestyle() == "-"
