"""Text that stays within a figure: legends where there is room for them, titles in as many lines as they need."""

import textwrap
from collections.abc import Collection, Iterable
from typing import Any

from matplotlib.figure import Figure
from matplotlib.text import Text

_HANDLE, _LETTER = 0.62, 0.058  # inches of a legend at 7.5 points: the line with its space, a letter
_BESIDE = 0.4  # the share of a figure's width that a legend beside its panel may take


def legend_columns(labels: Iterable[str], width: float, most: int = 4) -> int:
    """How many columns of a legend below the panels fit a figure `width` inches wide, at 7.5 points."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(most, int(width / (_HANDLE + _LETTER * longest))))


def legend_place(labels: Collection[str], width: float) -> dict[str, Any]:
    """Matplotlib's keywords of a legend beside the one panel of a figure `width` inches wide, or below it where its
    labels are so long that they would leave the panel too little."""
    longest = max((len(label) for label in labels), default=1)
    if _HANDLE + _LETTER * longest <= _BESIDE * width:
        return {"loc": "outside right upper"}
    return {"loc": "outside lower center", "ncols": min(len(labels), legend_columns(labels, width))}


def keep_inside(figure: Figure) -> None:
    """Break the titles that would run out of the figure, or into that of the next panel, into lines."""
    titles = _titles(figure)
    for title in titles:
        title.set_visible(False)  # else a long one would push the panels aside
    figure.draw_without_rendering()
    for title in titles:
        room = _room(title, figure)
        title.set_visible(True)
        _break(title, room)


def _titles(figure: Figure) -> list[Text]:
    found = [text for text in figure.texts if text.get_text() == figure.get_suptitle()]
    for axes in figure.axes:
        texts = [part for part in axes.get_children() if isinstance(part, Text)]
        found += [text for text in texts if text.get_text() == axes.get_title(loc="left")]
    return [title for title in found if title.get_text()]


def _room(title: Text, figure: Figure) -> float:
    """The pixels that a title may take: a panel's up to the next panel, or a legend beside it."""
    if title.axes is None:
        return figure.bbox.width
    lefts = [axes.bbox.x0 for axes in figure.axes if axes.axison]
    lefts += [legend.get_window_extent().x0 for legend in figure.legends]
    end = min((left for left in lefts if left > title.axes.bbox.x1), default=figure.bbox.x1)
    return end - title.axes.bbox.x0


def _break(title: Text, room: float) -> None:
    text, width = title.get_text(), title.get_window_extent().width
    if width > room:
        longest = max(map(len, text.split("\n")))
        letters = max(10, int(longest * room / width) - 1)
        title.set_text(textwrap.fill(" ".join(text.split()), letters, break_on_hyphens=False))
