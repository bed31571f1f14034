"""Accuracy, or a chosen setting, against a setting of cells such as batch size, noise or augmentation multiplicity.

de2022, Figures 2 to 4, 6, 7, 10 and 11; written as PDF, PNG, SVG and CSV.

A line is made of cells of one epsilon. What is asked of a cell stands in its metrics.json: a metric, as mean over seeds
with its bar (`bars.py`), or a hyper-parameter as it was used, chosen by a search or not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.aggregate import mean_interval, mean_median_std
from dpstudy.evaluation.metrics import metric_of, names
from dpstudy.tables.accuracies import UNDEFINED
from dpstudy.tables.bars import BARS, bar, factors, lengths
from dpstudy.tables.chance import chance_level, draw_chance
from dpstudy.tables.checks import check_cell
from dpstudy.tables.intervals import joined
from dpstudy.tables.keys import EPSILON, NAMES, TEXT, mapping, several
from dpstudy.tables.palette import COLOURS, MARKERS
from dpstudy.tables.panels import EDGED, WIDTH, decades, finish, mark_places
from dpstudy.tables.remarks import measured
from dpstudy.tables.selecting import cell_path
from dpstudy.tables.style import Drawn, FigureStyle, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from dpstudy.tables.results import Results

CSV_HEADER = (
    *("panel", "line", "dataset", "features", "entry", "epsilon"),
    *("x", "x_value", "y", "y_value", "std", "seeds", "low", "high"),
)
COPIES, EPOCHS = "copies", "epochs"  # not hyper-parameters of their own
_CALLED = {  # what an axis calls a hyper-parameter
    "batch_size": "batch size B",
    "noise_multiplier": "noise multiplier σ",
    "steps": "steps T",
    "learning_rate": "learning rate",
    "clipping_norm": "clipping norm C",
    COPIES: "augmentation multiplicity K",
    EPOCHS: "epochs",
}
_PANEL_HEIGHT, _COLUMNS, _TICKS = 2.3, 2, 8


@dataclass(frozen=True)
class Point:
    """One cell in one panel; `std`, `seeds` and `interval` are None where y is a setting."""

    features: str
    entry: str
    x: float
    y: float
    std: float | None
    seeds: int | None
    interval: tuple[float, float] | None


def draw_settings(name: str, spec: dict, results: Results) -> Drawn:
    """The figure of a spec.

    Raises:
        StudyError: a cell has no such metric or setting, or its setting is no number.
    """
    where = f"figure {name}"
    panels = [[_points(where, panel, line, results.metrics) for line in spec["series"]] for panel in spec["panels"]]
    rows = (
        (_title(panel, number), line["label"], line["dataset"], point.features, point.entry, line["epsilon"])
        + (panel["x"], point.x, panel["y"], point.y, point.std, point.seeds, *(point.interval or (None, None)))
        for number, (panel, lines) in enumerate(zip(spec["panels"], panels, strict=True))
        for line, points in zip(spec["series"], lines, strict=True)
        for point in points
    )
    cells = [cell_path(line | part) for line in spec["series"] for part in _parts(line)]
    chances = [chance_level(one["y"], cells, results) if one["y"] in names() else None for one in spec["panels"]]
    return Drawn(CSV_HEADER, rows, draw(spec, panels, chances))


def _title(panel: dict, number: int) -> str:
    return panel.get("title", f"({chr(ord('a') + number)})")


def _points(where: str, panel: dict, line: dict, metrics: Mapping[str, str | os.PathLike]) -> list[Point]:
    """The points of one line, by x; none of cells whose test records give a metric no value."""
    points = []
    for part in _parts(line):
        cell = cell_path(line | part)
        document, place = read_json(metrics[cell]), f"{where}: the cell {cell}"
        if {panel["x"], panel["y"]} & {*document.get("undefined", ())}:
            continue
        x = part["x"] if "x" in part else _value(place, document, panel["x"])[0]
        points.append(Point(part["features"], part["entry"], x, *_value(place, document, panel["y"])))
    return sorted(points, key=lambda point: point.x)


def _value(where: str, document: dict, name: str) -> tuple[float, float | None, int | None, tuple[float, float] | None]:
    """(value, standard deviation, seeds, interval) of a metric, or (value, None, None, None) of a setting."""
    if name in names():
        values = [row[name] for row in document["seeds"] if name in row]
        if not values:
            raise StudyError(f"{where} has no {name!r}; name it in evaluation.metrics")
        mean, _, std = mean_median_std(values)
        return mean, std, len(values), joined(values, mean_interval(document["seeds"], name), name)
    settings = document["hyperparameters"]
    if name == COPIES:
        return float((settings.get("augmentation") or {}).get("multiplicity", 0)), None, None, None
    if name == EPOCHS and "steps" in settings:
        return settings["steps"] * settings.get("sampling_rate", 1.0), None, None, None
    value = settings.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        numbers = ", ".join(key for key, one in settings.items() if type(one) in (int, float))
        raise StudyError(f"{where} has no number {name!r}; it has {numbers}, {COPIES} and the metrics")
    return float(value), None, None, None


def draw(spec: dict, panels: Sequence[Sequence[list[Point]]], chances: Sequence[float | None] = ()) -> Figure:
    """The figure: a colour and a marker per line; `chances` are the panels' chance levels."""
    from matplotlib.figure import Figure

    from dpstudy.tables.lettering import legend_columns

    columns = min(len(panels), _COLUMNS)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(WIDTH, 0.6 + _PANEL_HEIGHT * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    handles: list[Line2D] = []
    for number, (panel, lines, ax) in enumerate(zip(spec["panels"], panels, axes, strict=False)):
        values = [point.x for points in lines for point in points]
        aside = factors(len(lines), {_place(x, values) for x in values}, columns)
        handles = [  # the same in every panel
            _line(ax, points, values, factor, COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)])
            for place, (points, factor) in enumerate(zip(lines, aside, strict=True))
        ]
        _axes(ax, panel, values, _title(panel, number))
    draw_chance(dict(zip(axes, chances, strict=False)))
    for unused in axes[len(panels) :]:
        unused.set_visible(False)
    labels = [line["label"] for line in spec["series"]]
    figure.legend(handles, labels, frameon=False, loc="outside lower center", ncols=legend_columns(labels, WIDTH))
    if "title" in spec:
        figure.suptitle(spec["title"])
    return figure


def _line(
    ax: Axes, points: Sequence[Point], values: Sequence[float], factor: float, colour: str, marker: str
) -> Line2D:
    x, y = [factor * _place(point.x, values) for point in points], [point.y for point in points]
    (drawn,) = ax.plot(x, y, color=colour, marker=marker, **EDGED)
    spread = lengths(bar(point.y, point.std, point.interval) for point in points)
    if spread is not None:
        ax.errorbar(x, y, spread, fmt="none", ecolor=colour, elinewidth=0.7, capsize=2)
    return drawn


def _place(x: float, values: Sequence[float]) -> float:
    """Where x stands on a logarithmic axis: no copies stand half as far as the least."""
    return x if x > 0 else min((value for value in values if value > 0), default=1.0) / 2


def _axes(ax: Axes, panel: dict, values: Sequence[float], title: str) -> None:
    from matplotlib.ticker import NullLocator

    ax.set_xscale("log")
    if not values:
        ax.text(0.5, 0.5, UNDEFINED, ha="center", wrap=True, transform=ax.transAxes)
    distinct = sorted(set(values))
    if len(distinct) <= _TICKS:
        labels = [f"{value:g}" if value > 0 else "none" for value in distinct]
        mark_places(ax, [_place(value, distinct) for value in distinct], labels, alone=len(distinct) == 1)
    else:
        decades(ax.xaxis)
        ax.xaxis.set_minor_locator(NullLocator())
    if panel["y"] not in names():
        ax.set_yscale("log")
        decades(ax.yaxis)
        ax.yaxis.set_minor_locator(NullLocator())
    finish(
        ax, _called(panel["x"]), metric_of(panel["y"]).label if panel["y"] in names() else _called(panel["y"]), title
    )


def _called(name: str) -> str:
    return _CALLED.get(name, name.replace("_", " "))


def _parts(line: Mapping) -> list[dict]:
    """The cells of a line: features, entry and perhaps x."""
    named = [{"features": line["features"], "entry": entry} for entry in line.get("entries", [])]
    return [*line.get("cells", []), *named]


def _cells(spec: Mapping, study: Study) -> list[str]:
    return list(dict.fromkeys(cell_path(line | part) for line in spec["series"] for part in _parts(line)))


def _check(where: str, spec: dict, study: Study) -> None:
    """Every line names cells in one of two ways, and what is drawn of a metric is measured."""
    for number, line in enumerate(spec["series"]):
        at = f"{where}.series[{number}]"
        if ("cells" in line, "features" in line, "entries" in line) not in ((True, False, False), (False, True, True)):
            raise StudyError(f"{at}: give it 'features' and 'entries', or 'cells' that say their x")
        if ("cells" in line) != ("cells" in spec["series"][0]):
            raise StudyError(f"{at}: some series have 'cells' that say their x; give them to all")
        parts = [line | part for part in _parts(line)]
        for name in (check_cell(at, part, study) for part in parts):
            if [*map(cell_path, parts)].count(name) > 1:
                raise StudyError(f"{at}: names the cell {name} twice")
    stated = "cells" in spec["series"][0]
    if stated and len({panel["x"] for panel in spec["panels"]}) > 1:
        raise StudyError(f"{where}.panels: the cells state one x, so give all panels the same words for it")
    measured = study.config["evaluation"]["metrics"]
    for number, panel in enumerate(spec["panels"]):
        for axis in ("y",) if stated else ("x", "y"):
            if panel[axis] in names() and panel[axis] not in measured:
                raise StudyError(
                    f"{where}.panels[{number}].{axis}: {panel[axis]!r} is not among evaluation.metrics {measured}"
                )


_X = TEXT | {
    "description": "A number among the cells' hyper-parameters, copies (augmentation multiplicity, 0 without) or "
    "epochs; where cells state it, the words under the axis."
}
_Y = TEXT | {"description": "The same, or one of evaluation.metrics."}
_STATED = {"type": "number", "exclusiveMinimum": 0, "description": "Where the cell stands."}
STYLE = FigureStyle(
    keys={
        "panels": several(mapping(("x", "y"), title=TEXT, x=_X, y=_Y)),
        "series": several(
            mapping(
                ("label", "dataset", "epsilon"),
                label=TEXT,
                dataset=TEXT,
                features=TEXT,
                epsilon=EPSILON,
                entries=NAMES,
                cells=several(mapping(("features", "entry", "x"), features=TEXT, entry=TEXT, x=_STATED)),
            ),
            "A line each. Its cells are those of its `entries` on its `features`, or, where what a panel's x counts is "
            "no hyper-parameter, `cells` that state it (the depths of networks, the sizes of images).",
        ),
    },
    needs=("panels", "series"),
    check=_check,
    cells=_cells,
    documents=("metrics",),
    draw=draw_settings,
    caption=lambda spec, axes, numbers: measured(
        spec,
        axes,
        numbers,
        "or the chosen setting against what each cell was given",
        f"mean over seeds, {BARS}; a setting that was searched is that of the best trial",
    ),
)
