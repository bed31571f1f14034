"""The accuracy of random guessing, drawn as a line in figures where it fits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dpstudy.evaluation.metrics import metric_of
from dpstudy.tables.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL = "chance"
_NEAR = 0.25  # of the span of what is drawn: how far outside of it the line may lie
_LINE: dict[str, Any] = {"color": "0.45", "linewidth": 0.8, "linestyle": ":", "zorder": 1}


def chance_level(metric: str, cells: Iterable[str], results: Results) -> float | None:
    """The chance level of an axis with these cells; None where it is not known or differs between cells.

    Raises:
        StudyError: a cell has no metrics.json.
    """
    chance = metric_of(metric).chance
    if chance is None:
        return None
    levels = {chance(classes) for classes in {results.classes(cell) for cell in cells}}
    return levels.pop() if len(levels) == 1 else None


def in_view(level: float | None, low: float, high: float) -> bool:
    """Whether a level lies within the drawn range from `low` to `high`, or near it.

    >>> [in_view(10.0, low, 90.0) for low in (5.0, 26.0, 27.0)]
    [True, True, False]
    """
    near = _NEAR * (high - low)
    return level is not None and low - near <= level <= high + near


def draw_chance(levels: Mapping[Axes, float | None]) -> None:
    """Draw the labelled, dotted chance level of each panel, after everything else is drawn."""
    spans = {panel: _span(panel) for panel in levels}  # before a line changes one
    for panel, level in levels.items():
        if level is not None and in_view(level, *spans[panel]):
            panel.axhline(level, **_LINE)
            where: dict[str, Any] = {"transform": panel.get_yaxis_transform(), "ha": "right", "va": "bottom"}
            panel.text(1.0, level, LABEL, fontsize=6.5, color="0.35", in_layout=False, **where)


def _span(panel: Axes) -> tuple[float, float]:
    """The least and the largest of what is drawn on a vertical axis, which several panels may share."""
    ends = [end for one in panel.get_shared_y_axes().get_siblings(panel) for end in one.dataLim.intervaly]
    known = [end for end in ends if math.isfinite(end)]
    return (min(known), max(known)) if known else (math.nan, math.nan)
