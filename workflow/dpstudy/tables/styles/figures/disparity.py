"""A metric on each subgroup of the test split, a panel per method entry and feature set, as PDF, PNG, SVG and CSV.

A point is one group at one epsilon: the mean over seeds, with its 95 % interval over seeds and test records.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpstudy.evaluation.metrics import metric_of
from dpstudy.evaluation.summary import cell_name
from dpstudy.tables.bars import INTERVALS, bar, lengths
from dpstudy.tables.chance import chance_level, draw_chance
from dpstudy.tables.checks import check_column, check_crossed
from dpstudy.tables.keys import COLUMN, EPSILONS, TEXT, row_schema
from dpstudy.tables.names import line_label, marked
from dpstudy.tables.palette import COLOURS, MARKERS
from dpstudy.tables.panels import WIDTH, finish, handles_of, panels_of, without_points
from dpstudy.tables.remarks import figure_remarks
from dpstudy.tables.style import Drawn, FigureStyle
from dpstudy.tables.subgroups import CSV_HEADER, GAP, WHOLE, Score, csv_rows, lay_disparities

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpstudy.tables.results import Results

_PANEL_HEIGHT, _COLUMNS = 2.4, 3
_GROUPS_ABREAST = 16  # groups side by side before a panel goes below the others
_SPREAD = 0.6  # of the room between two groups, taken by the points of one
_LEAST_SPAN = 0.1  # of a metric between 0 and 1, along the axis: groups that hardly differ shall look so
_LETTER, _TURNED = 0.07, 0.6  # inches that a letter of a group's name takes, and that turned names need
_OPEN: dict[str, Any] = {"color": "black", "marker": "o", "markerfacecolor": "white", "markeredgecolor": "black"}


def draw_disparities(name: str, spec: dict, results: Results) -> Drawn:
    """The figure of a spec, with a panel per row. Raises: as `lay_disparities`."""
    metric = spec.get("metric", "top1")
    scores = lay_disparities(name, spec, results, "figure")
    chance = chance_level(metric, {cell_name(*score.place) for score in scores}, results)
    figure = draw(spec, scores, results.axes, metric, chance)
    return Drawn(CSV_HEADER, csv_rows(scores, spec["column"], metric), figure)


def draw(
    spec: dict, scores: list[Score], axes: Mapping[str, list[str]], metric: str, chance: float | None = None
) -> Figure:
    """The figure. `axes` are the study's names, so that each epsilon keeps its colour; `chance` is the chance level."""
    epsilons, measure = axes["epsilons"], metric_of(metric).label
    scores = [score for score in scores if score.group not in (WHOLE, GAP) and score.mean is not None]
    groups = list(dict.fromkeys(score.group for score in scores))
    if not groups:
        return without_points(f"{measure}: too few records in the groups to compare them", _PANEL_HEIGHT)
    by_row = [[s for s in scores if s.place[1:3] == (row["features"], row["entry"])] for row in spec["rows"]]
    drawn = [(row, row_scores) for row, row_scores in zip(spec["rows"], by_row, strict=True) if row_scores]
    most = min(_COLUMNS, max(1, _GROUPS_ABREAST // len(groups)))
    tight = max(map(len, groups)) * _LETTER > WIDTH / min(len(drawn), most) / len(groups)
    height = _PANEL_HEIGHT + (_TURNED if tight else 0)
    figure, panels, columns = panels_of(len(drawn), most, height, 0.5, spec.get("title"), share_y=True)
    shown = [epsilon for epsilon in epsilons if any(score.place[3] == epsilon for score in scores)]
    for i, (panel, (row, row_scores)) in enumerate(zip(panels, drawn, strict=True)):
        for number, epsilon in enumerate(shown):
            shift = _SPREAD * ((number + 0.5) / len(shown) - 0.5)
            _draw_points(panel, [s for s in row_scores if s.place[3] == epsilon], groups, shift, epsilons)
        panel.set_xlim(-0.5, len(groups) - 0.5)
        turned: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if tight else {}
        panel.set_xticks(range(len(groups)), groups, **turned)
        letters = int(WIDTH / columns / _LETTER)  # a longer title would run out of the figure
        title = textwrap.fill(marked(line_label(row), row["entry"], axes), letters)
        finish(panel, spec["column"].replace("_", " "), "" if i % columns else measure, title)
    draw_chance(dict.fromkeys(panels, chance))
    _widen(panels[0], _LEAST_SPAN * (100 if metric_of(metric).percent else 1))
    handles = handles_of(panels)
    names = [label for label in map(_name, shown) if label in handles]
    figure.legend([handles[label] for label in names], names, frameon=False, loc="outside lower center", ncols=6)
    return figure


def _widen(panel: Axes, least: float) -> None:
    low, high = panel.get_ylim()
    if high - low < least:
        panel.set_ylim((low + high - least) / 2, (low + high + least) / 2)


def _name(epsilon: str) -> str:
    return "ε = ∞ (not private)" if epsilon == "inf" else f"ε = {epsilon}"


def _draw_points(panel: Axes, scores: list[Score], groups: list[str], shift: float, epsilons: list[str]) -> None:
    """The points of one epsilon, with bars where there are intervals; what is not private is hollow."""
    if not scores:
        return
    epsilon = scores[0].place[3]
    number = [each for each in epsilons if each != "inf"].index(epsilon) if epsilon != "inf" else 0
    filled: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
    style = _OPEN if epsilon == "inf" else filled | {"markeredgecolor": "white"}
    shown = [(score, score.mean) for score in scores if score.mean is not None]
    x, means = [groups.index(score.group) + shift for score, _ in shown], [mean for _, mean in shown]
    ends = [None if s.low is None or s.high is None else (s.low, s.high) for s, _ in shown]
    bars = lengths(bar(mean, None, both) for mean, both in zip(means, ends, strict=True))
    keywords: dict[str, Any] = {"linestyle": "none", "capsize": 1.5, "elinewidth": 0.7, "markeredgewidth": 0.6}
    panel.errorbar(x, means, bars, label=_name(epsilon), **keywords, **style)


def _caption(spec: Mapping, axes: Mapping, numbers: str) -> tuple[str, str]:
    metric, by = metric_of(spec.get("metric", "top1")).label, spec["column"].replace("_", " ")
    detail = f"mean over seeds, {INTERVALS}; no bar where there is none"
    return (
        f"{metric} on the test split by {by}; {detail}.{figure_remarks(spec, axes)}",
        f"{metric} by {by}; {numbers}.",
    )


STYLE = FigureStyle(
    keys={
        "dataset": TEXT,
        "column": COLUMN,
        "rows": row_schema("features", "entry", "label"),
        "epsilons": EPSILONS,
    },
    needs=("dataset", "rows", "column"),
    check=(check_column, check_crossed),
    documents=("metrics",),
    draw=draw_disparities,
    caption=_caption,
)
