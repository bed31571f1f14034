"""Histograms of training records' distances to their nearest neighbours of the same class (anon_smoothing, Fig. 1).

Written as PDF, PNG, SVG and CSV.

This is a statistic of private records without noise: no guarantee covers it, and it is not for publication.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.tables.keys import NAMES, TEXT
from dpstudy.tables.numbers import significant
from dpstudy.tables.palette import COLOURS, LINES
from dpstudy.tables.panels import finish, panels_of
from dpstudy.tables.style import Drawn, FigureStyle, Study, nothing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpstudy.tables.results import Results

NEIGHBOURS = 5  # where the spec names no number
BINS = 40
CSV_HEADER = (
    *("dataset", "features", "neighbours", "class", "n", "mean", "std", "bins_from", "bin_width"),
    *(f"bin_{number}" for number in range(1, BINS + 1)),
)
_HEIGHT, _LINE_HEIGHT = 3.1, 0.15  # inches; the last of a line of the legend
_LINES_TOLD_APART = len(COLOURS) * len(LINES)


@dataclass(frozen=True)
class Spacing:
    """One class, with (n,) each record's mean Euclidean distance to its nearest neighbours in the class.

    `distances` is empty where the class has fewer than two records; `n` counts them.
    """

    name: str
    n: int
    distances: np.ndarray

    @property
    def mean(self) -> float | None:
        """The mean distance; None without distances."""
        return float(self.distances.mean()) if len(self.distances) else None

    @property
    def std(self) -> float | None:
        """The standard deviation over records; None for fewer than two distances."""
        return float(self.distances.std(ddof=1)) if len(self.distances) > 1 else None


def draw_neighbours(name: str, spec: dict, results: Results) -> Drawn:
    """The figure of a spec; in its CSV, bin_i counts the records of a class with distances in that bin.

    Raises:
        StudyError: a class that the data set does not have, too many classes, or none of two records.
    """
    neighbours = spec.get("neighbours", NEIGHBOURS)
    folder = Path(results.features[f"{spec['dataset']}/{spec['features']}"]).parent
    classes = spacings(f"figure {name}", folder, spec.get("classes"), neighbours)
    edges = np.histogram_bin_edges(np.concatenate([each.distances for each in classes]), BINS)
    counts = [np.histogram(each.distances, edges)[0] for each in classes]
    shared = (spec["dataset"], spec["features"], neighbours)
    bins = (float(edges[0]), float(edges[1] - edges[0]))
    rows = (
        (*shared, each.name, each.n, each.mean, each.std, *bins, *map(int, count))
        for each, count in zip(classes, counts, strict=True)
    )
    return Drawn(CSV_HEADER, rows, draw(spec, classes, counts, edges, neighbours))


def spacings(where: str, folder: str | os.PathLike, classes: list[str] | None, neighbours: int) -> list[Spacing]:
    """The distances within each of the `classes` (None: all classes), in the order named.

    A record with several labels belongs to each of its classes.

    Raises:
        StudyError: as `draw_neighbours`.
    """
    import torch

    from dpstudy.features import shards
    from dpstudy.methods.local_sensitivity import neighbour_distances

    table = shards.load(folder)
    classes = list(table.classes) if classes is None else classes
    for wanted in classes:
        if wanted not in table.classes:
            raise StudyError(
                f"{where}.classes: the data set has no class {wanted!r}; there are {', '.join(table.classes)}"
            )
    if len(classes) > _LINES_TOLD_APART:
        raise StudyError(
            f"{where}: {len(classes)} classes cannot be told apart; name at most {_LINES_TOLD_APART} in 'classes'"
        )
    by_class = []
    for wanted in classes:
        number = table.classes.index(wanted)
        members = table.labels[:, number] == 1 if table.labels.ndim == 2 else table.labels == number
        points = torch.from_numpy(table.features[members].astype(np.float32))
        distances = neighbour_distances(points, neighbours).numpy() if len(points) > 1 else np.empty(0)
        by_class.append(Spacing(wanted, len(points), distances.astype(np.float64)))
    if not any(len(each.distances) for each in by_class):
        raise StudyError(f"{where}: no class has two training records, so there is no distance to draw")
    return by_class


def draw(spec: dict, found: list[Spacing], counts: list[np.ndarray], edges: np.ndarray, neighbours: int) -> Figure:
    """The figure: one panel, with a stepped line of area 1 for each class."""
    from dpstudy.tables.lettering import place_legend

    figure, (panel,), _ = panels_of(1, 1, max(_HEIGHT, _LINE_HEIGHT * (len(found) + 2)))
    for number, (each, count) in enumerate(zip(found, counts, strict=True)):
        if each.mean is None:
            continue
        line = LINES[number // len(COLOURS)]
        density = count / (count.sum() * np.diff(edges))
        label = f"{each.name} (mean {significant(each.mean, 3)})"
        colour = COLOURS[number % len(COLOURS)]
        panel.stairs(density, edges, label=label, color=colour, linestyle=line, linewidth=1.2)
    panel.set_ylim(bottom=0)
    whom = "nearest neighbour" if neighbours == 1 else f"{neighbours} nearest neighbours"
    x_label = f"mean distance to the {whom} of the same class"
    finish(panel, x_label, "density of training records", spec.get("title", ""))
    place_legend(figure, panel)
    return figure


def _check(place: str, spec: dict, study: Study) -> None:
    """Distances are measured between features that the study extracts."""
    dataset, features = spec["dataset"], spec["features"]
    if study.config["features"][features]["extractor"] == "images":
        raise StudyError(
            f"{place}.features: {features!r} leaves images as they are (extractor 'images'); distances are measured "
            "between features, so name a feature set of another extractor"
        )
    if not any((cell.dataset, cell.features) == (dataset, features) for cell in study.cells.values()):
        raise StudyError(f"{place}: the study has no cell of the data set {dataset!r} on the features {features!r}")


def _caption(spec: Mapping, axes: Mapping, numbers: str) -> tuple[str, str]:
    shown = f"distances from training records of {spec['dataset']} to the nearest of their class"
    caption = (
        f"{shown}, on the features {spec['features']}. They are computed from private records without noise: no "
        "guarantee covers this figure, and it is not for publication."
    )
    return caption, f"{shown}, a histogram a class; {numbers}."


STYLE = FigureStyle(
    keys={
        "dataset": TEXT,
        "features": TEXT | {"description": "the name of one feature set"},
        "neighbours": {
            "type": "integer",
            "minimum": 1,
            "description": "How many neighbours a record's distance is a mean over; 5 where absent.",
        },
        "classes": NAMES | {"description": "The classes that are drawn; all where absent."},
    },
    needs=("dataset", "features"),
    check=_check,
    cells=nothing,
    documents=lambda spec, study: {"features": [f"{spec['dataset']}/{spec['features']}"]},
    draw=draw_neighbours,
    caption=_caption,
    measures=False,
    publishable=False,
)
