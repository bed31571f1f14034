"""Panels of figures: a grid of them, and what each has besides its data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 6.3  # inches: the text width of the usual one-column formats
EDGED: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.5}


def panels_of(
    count: int, most: int, height: float, more: float = 0.0, title: str | None = None, share_y: bool = False
) -> tuple[Figure, list[Axes], int]:
    """A figure with `count` panels, those panels, and how many stand side by side.

    Args:
        most: that may stand side by side.
        height: inches of a row of panels; `more` are added for the whole figure.
        title: above all panels.
        share_y: whether the panels share one vertical axis.
    """
    from matplotlib.figure import Figure

    columns = min(count, most)
    rows = -(-count // columns)
    figure = Figure(figsize=(WIDTH, height * rows + more), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False, sharey=share_y).flat)
    for unused in panels[count:]:
        unused.set_axis_off()
    if title is not None:
        figure.suptitle(title)
    return figure, panels[:count], columns


def without_points(words: str, height: float) -> Figure:
    """A figure of nothing but a sentence that says why."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    figure.text(0.5, 0.5, words, ha="center")
    return figure


def finish(panel: Axes, x_label: str, y_label: str, title: str = "") -> None:
    """Give a panel its labels, and horizontal lines behind what is drawn."""
    panel.grid(axis="y", color="0.9", linewidth=0.5)
    panel.set_axisbelow(True)
    panel.set_xlabel(x_label)
    panel.set_ylabel(y_label)
    panel.set_title(title, loc="left")


def mark_places(panel: Axes, places: Sequence[float], labels: Sequence[str], alone: bool) -> None:
    """Make a panel's horizontal axis logarithmic, ticks at these places only; one `alone` in the middle."""
    from matplotlib.ticker import NullLocator

    panel.set_xscale("log")
    panel.set_xticks(places, labels)
    panel.xaxis.set_minor_locator(NullLocator())
    if alone:
        panel.set_xlim(places[0] / 2, places[0] * 2)


def handles_of(panels: Iterable[Axes]) -> dict[str, Artist]:
    """Label -> what stands for it in a legend of all the panels."""
    return {label: handle for one in panels for handle, label in zip(*one.get_legend_handles_labels(), strict=True)}


def decades(axis) -> None:
    """Mark a logarithmic axis at 1, 2 and 5 of each power of ten, with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
