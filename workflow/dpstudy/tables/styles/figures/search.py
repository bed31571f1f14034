"""Search results by one hyper-parameter at a time: median and maximum of trials per value (tramer2021, Figure 8).

Written as PDF, PNG, SVG and CSV.

Values are on the validation split: a search never sees the test split.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.metrics import metric_of
from dpstudy.tables.chance import chance_level, draw_chance
from dpstudy.tables.checks import check_searches
from dpstudy.tables.grouping import by_key
from dpstudy.tables.keys import SEARCHES, TEXT, mapping, several
from dpstudy.tables.numbers import significant
from dpstudy.tables.palette import COLOURS, MARKERS, colours
from dpstudy.tables.panels import finish, panels_of
from dpstudy.tables.remarks import measured
from dpstudy.tables.selecting import searched
from dpstudy.tables.style import Drawn, FigureStyle, Study
from dpstudy.tables.trials import BY_LABEL, pooled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpstudy.tables.results import Results

CSV_HEADER = ("panel", "by", "search", "dataset", "epsilon", "value", "trials", "failed", "median", "max")
_PANEL_HEIGHT, _COLUMNS = 2.3, 2
_MEDIAN: dict[str, Any] = {"linestyle": "--", "markerfacecolor": "none"}


@dataclass(frozen=True)
class Point:
    """The trials of one search that share a hyper-parameter's value.

    Attributes:
        value: as text.
        values: of the trials that did not fail, in percent.
        failed: how many did.
    """

    value: str
    values: tuple[float, ...]
    failed: int


@dataclass(frozen=True)
class View:
    """One search in one panel: a point for each value, in the order of the axis."""

    panel: int
    search: dict
    points: tuple[Point, ...]


def draw_searches(name: str, spec: dict, results: Results) -> Drawn:
    """The figure of a spec.

    Raises:
        StudyError: a trials.parquet is missing or damaged, or every trial of a panel failed.
    """
    views = [
        View(number, search, _points(panel["by"], search, results.trials))
        for number, panel in enumerate(spec["panels"])
        for search in spec["searches"]
    ]
    for number, panel in enumerate(spec["panels"]):
        if not any(point.values for view in views if view.panel == number for point in view.points):
            raise StudyError(f"figure {name}: no trial that succeeded has a value of {panel['by']!r}")
    chance = chance_level(spec.get("metric", "top1"), searched(spec), results)
    return Drawn(CSV_HEADER, _rows(spec["panels"], views), draw(spec, views, results.axes, chance))


def _rows(panels: list[dict], views: list[View]):
    for view in views:
        panel, search = panels[view.panel], view.search
        cells = (panel.get("title", panel["by"]), panel["by"], search["label"], search["dataset"], search["epsilon"])
        for point in view.points:
            trials = len(point.values) + point.failed
            ends = (of(point.values) if point.values else None for of in (statistics.median, max))
            yield (*cells, point.value, trials, point.failed, *ends)


def _points(by: str, search: dict, trials: Mapping[str, str | os.PathLike]) -> tuple[Point, ...]:
    """The trials of a search's cells by their value; of cells without a label, none in a panel over labels."""
    found = (
        (cell.get("label") if by == BY_LABEL else _text(trial[by]), trial) for cell, trial in pooled(search, trials)
    )
    by_value = by_key(((value, trial) for value, trial in found if value is not None), itemgetter(0))
    points = []
    for value in _ordered(by_value):
        complete = tuple(trial["value"] for _, trial in by_value[value] if trial["state"] == "complete")
        points.append(Point(value, complete, len(by_value[value]) - len(complete)))
    return tuple(points)


def _text(value: str | float) -> str:
    """A value with one spelling: cells may write 1 and 1.0."""
    try:
        return significant(float(value))
    except ValueError:
        return str(value)


def _ordered(values) -> list[str]:
    """By size where all are numbers, else as they come."""
    try:
        return sorted(values, key=float)
    except ValueError:
        return list(values)


def _colours(searches: list[dict], names: Mapping[str, Sequence[str]]) -> dict[int, str]:
    """id of a search -> its colour: that of its entry, where each search is of another; else by order."""
    entries = [search["cells"][0]["entry"] for search in searches]
    if len(set(entries)) < len(entries):
        return {id(search): COLOURS[i % len(COLOURS)] for i, search in enumerate(searches)}
    return {id(search): colour for search, colour in zip(searches, colours(entries, names), strict=True)}


def draw(spec: dict, views: list[View], names: Mapping[str, Sequence[str]], chance: float | None = None) -> Figure:
    """The figure: a colour per search, the maximum as a solid line, the median dashed; `chance` is the chance level."""
    from matplotlib.lines import Line2D

    shared, measure = spec.get("share_y", False), metric_of(spec.get("metric", "top1")).label
    figure, panels, columns = panels_of(len(spec["panels"]), _COLUMNS, _PANEL_HEIGHT, 0.5, spec.get("title"), shared)
    colour_of = _colours(spec["searches"], names)
    for number, (panel, options) in enumerate(zip(panels, spec["panels"], strict=True)):
        mine = [view for view in views if view.panel == number and view.points]
        ordered = _ordered(dict.fromkeys(point.value for view in mine for point in view.points))
        for view in mine:
            _draw_view(panel, view, ordered, colour_of[id(view.search)], joined=options["by"] != BY_LABEL)
        panel.set_xticks(range(len(ordered)), ordered)
        panel.margins(x=0.08)
        y_label = f"{measure}\non the validation split" if number % columns == 0 or not shared else ""
        finish(panel, "", y_label, options.get("title", options["by"].replace("_", " ")))
    draw_chance(dict.fromkeys(panels, chance))
    handles = [Line2D([], [], color=colour_of[id(search)], label=search["label"]) for search in spec["searches"]]
    grey: dict[str, Any] = {"color": "0.25", "marker": MARKERS[0]}
    handles += [Line2D([], [], label="maximum", **grey), Line2D([], [], label="median", **grey | _MEDIAN)]
    columns = min(5, len(handles))
    figure.legend(handles=handles, frameon=False, loc="outside lower center", ncols=columns, handlelength=3)
    return figure


def _draw_view(panel: Axes, view: View, ordered: list[str], colour: str, joined: bool) -> None:
    """Values on an axis of equal steps, whatever they are; points that have no order are not joined."""
    points = [point for point in view.points if point.values]
    x = [ordered.index(point.value) for point in points]
    loose: dict[str, Any] = {} if joined else {"linestyle": "none"}
    best, medians = ([of(point.values) for point in points] for of in (max, statistics.median))
    panel.plot(x, best, color=colour, marker=MARKERS[0], **loose)
    panel.plot(x, medians, color=colour, marker=MARKERS[0], **_MEDIAN | loose)


def _check(place: str, spec: dict, study: Study) -> None:
    check_searches(place, spec, study, [panel["by"] for panel in spec["panels"] if panel["by"] != BY_LABEL])


def _caption(spec: Mapping, axes: Mapping, numbers: str) -> tuple[str, str]:
    detail = (
        "over all trials of each search with that value; the split is of private records, which no ledger accounts for"
    )
    return measured(spec, {}, numbers, "on the validation split by one hyper-parameter", detail)


_BY = TEXT | {"description": "A hyper-parameter that all the searches choose from a list, or label, which cells bear."}
STYLE = FigureStyle(
    keys={
        "panels": several(mapping(("by",), title=TEXT, by=_BY)),
        "searches": SEARCHES | {"description": "A pair of lines each."},
        "share_y": {"type": "boolean", "description": "One vertical axis for all panels."},
    },
    needs=("searches", "panels"),
    check=_check,
    cells=lambda spec, study: searched(spec),
    documents=("trials", "metrics"),
    draw=draw_searches,
    caption=_caption,
    scores=False,
)
