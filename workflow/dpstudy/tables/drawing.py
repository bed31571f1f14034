"""Common settings of figures, and saving them so that equal content gives equal bytes."""

import os

import matplotlib.style
from matplotlib.figure import Figure

from dpstudy.core.files import atomic
from dpstudy.tables.lettering import keep_inside

RC = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 9,
    "figure.titlesize": 9,
    "legend.fontsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 5,
    "pdf.fonttype": 42,  # TrueType: journals refuse Type 3
    "svg.hashsalt": "dpstudy",  # names within the file are drawn by chance otherwise
}


_SAVED: dict[str, dict] = {  # no date and no version: the same bytes for the same figure
    "pdf": {"metadata": {"CreationDate": None}},
    "png": {"metadata": {"Software": None}, "dpi": 200},
    "svg": {"metadata": {"Date": None, "Creator": None}},
}


def drawing():
    """A context with Matplotlib's settings for figures, which ignores a user's matplotlibrc."""
    return matplotlib.style.context(["default", RC])


def save(figure: Figure, *paths: str | os.PathLike) -> None:
    """Write a figure to paths that end in .pdf, .png or .svg, after wrapping titles that are too long."""
    keep_inside(figure)
    for path in paths:
        kind = os.fspath(path).rpartition(".")[2]
        with atomic(path) as temporary:
            figure.savefig(temporary, format=kind, **_SAVED[kind])
