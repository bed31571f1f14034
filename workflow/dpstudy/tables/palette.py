"""Colours and markers of a study: an entry keeps its colour and a kind of features its marker in every figure."""

from collections.abc import Iterable

# Okabe and Ito's colours, told apart by readers who see colours differently; black and yellow left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A5195", "#6B6B6B")
# The same, to be read on a dark ground.
COLOURS_ON_DARK = ("#5AB4E8", "#FF9554", "#3CCB9F", "#E9A6CB", "#9CDCFA", "#FFC24A", "#B99BD3", "#B4B4B4")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")
_HANDLE, _LETTER = 0.62, 0.058  # inches of a legend: the line with its space, a letter


def style(features: str, entry: str, axes: dict[str, list[str]]) -> dict:
    """Matplotlib keywords of a line: colour by entry, marker and dashes by features."""
    kind = axes["features"].index(features)
    return {
        "color": COLOURS[axes["entries"].index(entry) % len(COLOURS)],
        "marker": MARKERS[kind % len(MARKERS)],
        "linestyle": LINES[kind % len(LINES)],
    }


def legend_columns(labels: Iterable[str], width: float, most: int = 4) -> int:
    """How many columns of a legend below the panels fit a figure `width` inches wide, at 7.5 points."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(most, int(width / (_HANDLE + _LETTER * longest))))
