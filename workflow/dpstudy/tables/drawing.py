"""What every figure is drawn with: Matplotlib's settings, and files that are the same bytes for the same content."""

import os

import matplotlib.style
from matplotlib.figure import Figure

from dpstudy.core.files import atomic
from dpstudy.tables.lettering import keep_inside

RC = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 9,
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
    """A context with these settings; the style "default" first, for a user's matplotlibrc must not change the bytes."""
    return matplotlib.style.context(["default", RC])


def save(figure: Figure, *paths: str | os.PathLike) -> None:
    """Write a figure, its titles broken where they are too long, to paths that end in .pdf, .png or .svg."""
    keep_inside(figure)
    for path in paths:
        kind = os.fspath(path).rpartition(".")[2]
        with atomic(path) as temporary:
            figure.savefig(temporary, format=kind, **_SAVED[kind])
