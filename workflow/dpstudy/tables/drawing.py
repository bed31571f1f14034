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
}


def drawing():
    """A context with these settings; the style "default" first, for a user's matplotlibrc must not change the bytes."""
    return matplotlib.style.context(["default", RC])


def save(figure: Figure, pdf_path: str | os.PathLike, png_path: str | os.PathLike) -> None:
    """Write a figure, its titles broken where they are too long."""
    keep_inside(figure)
    with atomic(pdf_path) as temporary:
        figure.savefig(temporary, format="pdf", metadata={"CreationDate": None})
    with atomic(png_path) as temporary:
        figure.savefig(temporary, format="png", dpi=200, metadata={"Software": None})
