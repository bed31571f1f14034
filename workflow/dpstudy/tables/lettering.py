"""Fitting text into figures: placing legends and wrapping titles."""

import re
import textwrap
from collections.abc import Collection, Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

_HANDLE, _LETTER = 0.62, 0.058  # inches of a legend at 7.5 points: the line with its space, a letter
_BESIDE = 0.4  # the share of a figure's width that a legend beside its panel may take
_FEWEST, _GAP = 10, 0.08  # letters of a line, and inches from a title to what follows
_ROW, _ROWS = 0.16, 3  # inches of a legend's row, and how many a figure's height leaves room for


def legend_columns(labels: Iterable[str], width: float, most: int = 4) -> int:
    """The number of legend columns that fit below the panels of a figure `width` inches wide, at 7.5 points."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(most, int(width / (_HANDLE + _LETTER * longest))))


def legend_place(labels: Collection[str], width: float) -> dict[str, Any]:
    """Matplotlib's keywords for a legend beside the only panel, or below it where its labels are too long."""
    longest = max((len(label) for label in labels), default=1)
    if _HANDLE + _LETTER * longest <= _BESIDE * width:
        return {"loc": "outside right upper"}
    return {"loc": "outside lower center", "ncols": min(len(labels), legend_columns(labels, width))}


def give_room(figure: Figure, labels: Collection[str], place: dict[str, Any]) -> None:
    """Make a figure taller if the legend below its panel has too many rows."""
    rows = -(-len(labels) // place["ncols"]) if "ncols" in place else 0
    figure.set_figheight(figure.get_figheight() + _ROW * max(0, rows - _ROWS))


def place_legend(figure: Figure, panel: Axes) -> None:
    """Give a figure of one panel its legend, and the room for it."""
    _, labels = panel.get_legend_handles_labels()
    place = legend_place(labels, figure.get_figwidth())
    give_room(figure, labels, place)
    figure.legend(frameon=False, **place)


def keep_inside(figure: Figure) -> None:
    """Wrap titles that would leave the figure or run into the next panel's title."""
    titles = _titles(figure)
    for title in titles:
        title.set_visible(False)  # else a long one would push the panels aside
    figure.draw_without_rendering()
    for title in titles:
        room = _room(title, figure)
        title.set_visible(True)
        _break(title, room)


def _titles(figure: Figure) -> list[Text]:
    titles = [text for text in figure.texts if text.get_text() == figure.get_suptitle()]
    for axes in figure.axes:
        texts = [part for part in axes.get_children() if isinstance(part, Text)]
        titles += [text for text in texts if text.get_text() == axes.get_title(loc="left")]
    return [title for title in titles if title.get_text()]


def _room(title: Text, figure: Figure) -> float:
    """The pixels that a title may take: a panel's up to the next panel, or a legend beside it."""
    if title.axes is None:
        return figure.bbox.width - 2 * _GAP * figure.dpi
    lefts = [axes.bbox.x0 for axes in figure.axes if axes.axison]
    lefts += [legend.get_window_extent().x0 for legend in figure.legends]
    end = min((left for left in lefts if left > title.axes.bbox.x1), default=figure.bbox.x1)
    return end - title.axes.bbox.x0 - _GAP * figure.dpi


def _break(title: Text, room: float) -> None:
    lines, width = title.get_text().split("\n"), title.get_window_extent().width
    letters = max(map(len, lines))
    while width > room and letters > _FEWEST:
        letters = min(letters - 1, max(_FEWEST, int(letters * room / width)))
        title.set_text("\n".join(_filled(line, letters) for line in lines))
        width = title.get_window_extent().width


def _filled(line: str, letters: int) -> str:
    """A line broken at spaces alone, and at none of a formula's."""
    kept = re.sub(r"\$[^$]*\$", lambda formula: formula.group().replace(" ", "\0"), line)
    return textwrap.fill(kept, letters, break_on_hyphens=False, break_long_words=False).replace("\0", " ")
