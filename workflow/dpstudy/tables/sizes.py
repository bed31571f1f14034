"""Accuracy against the number of training records (tramer2021, Figure 4), as PDF, PNG and CSV.

A line is one method entry on one feature set, a point one data set: the mean over seeds with bars of one standard
deviation. n and the certified epsilon are the ledgers'.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evaluation.metrics import METRICS
from dpstudy.evaluation.summary import cell_name, read_summary, values_by_cell
from dpstudy.tables.figures import RC, save
from dpstudy.tables.lettering import give_room, legend_place
from dpstudy.tables.palette import colours, dashes, marker

CSV_HEADER = (
    *("line", "dataset", "features", "entry", "epsilon", "n", "delta", "certified_epsilon"),
    *("metric", "mean", "std", "seeds"),
)
_WIDTH, _HEIGHT = 6.3, 3.1


@dataclass(frozen=True)
class Point:
    """One cell: its data set, public n, delta and certified epsilon (None: none), and the metric over its seeds."""

    dataset: str
    n: int
    delta: float
    certified: float | None
    mean: float
    std: float
    seeds: int


def build_sizes(
    name: str,
    spec: dict,
    study_axes: Mapping[str, Sequence[str]],
    summary_path: str | os.PathLike,
    ledgers: Mapping[str, str | os.PathLike],
    pdf_path: str | os.PathLike,
    png_path: str | os.PathLike,
    csv_path: str | os.PathLike,
) -> None:
    """Draw one figure of style `size`.

    Args:
        name: its key under `figures`.
        spec: its value there: datasets (a point each), lines ({features, entry, epsilon, label}), metric, title.
        study_axes: {"datasets", "features", "entries", "epsilons"}: the study's names, in config order.
        summary_path: summary.csv or summary.parquet.
        ledgers: cell name -> path of its ledger.json.
        pdf_path, png_path, csv_path: what is written; the same bytes for the same content.

    Raises:
        StudyError: a cell has no such metric, or two data sets of one line are of the same size.
    """
    metric = spec.get("metric", "top1")
    values = values_by_cell(read_summary(summary_path), metric)
    points = [_points(f"figure {name}", spec, line, metric, values, ledgers) for line in spec["lines"]]
    rows = (
        (_label(line), point.dataset, line["features"], line["entry"], line["epsilon"], point.n, point.delta)
        + (point.certified, metric, point.mean, point.std, point.seeds)
        for line, found in zip(spec["lines"], points, strict=True)
        for point in found
    )
    write_csv(csv_path, CSV_HEADER, rows)
    with matplotlib.style.context(["default", RC]):
        save(draw(spec, points, study_axes), pdf_path, png_path)


def _label(line: dict) -> str:
    return line.get("label", f"{line['entry']}, {line['features']}")


def _points(where: str, spec: dict, line: dict, metric: str, values: Mapping, ledgers: Mapping) -> list[Point]:
    """The points of one line, by n."""
    found = []
    for dataset in spec["datasets"]:
        cell = cell_name(dataset, line["features"], line["entry"], line["epsilon"])
        if cell not in values:
            raise StudyError(f"{where}: the cell {cell} has no {metric!r}")
        ledger, (mean, _, std) = read_json(ledgers[cell]), mean_median_std(values[cell])
        found.append(Point(dataset, ledger["n"], ledger["delta"], ledger["epsilon"], mean, std, len(values[cell])))
    found.sort(key=lambda point: point.n)
    for one, other in zip(found, found[1:], strict=False):
        if one.n == other.n:
            raise StudyError(f"{where}: the data sets {one.dataset!r} and {other.dataset!r} both have {one.n} records")
    return found


def draw(spec: dict, points: list[list[Point]], axes: Mapping[str, Sequence[str]]) -> Figure:
    """The figure: one panel, n on a logarithmic axis with a tick for each size."""
    metric, own = spec.get("metric", "top1"), colours([line["entry"] for line in spec["lines"]], axes)
    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    panel = figure.subplots()
    for line, found, colour, dash in zip(spec["lines"], points, own, dashes(own), strict=True):
        keywords = marker(line["features"], axes["features"]) | {"color": colour, "linestyle": dash}
        keywords |= {"markeredgecolor": "white", "markeredgewidth": 0.5}
        n, mean, std = ([getattr(point, key) for point in found] for key in ("n", "mean", "std"))
        panel.errorbar(n, mean, std, label=_label(line), capsize=2, elinewidth=0.7, **keywords)
    sizes = sorted({point.n for found in points for point in found})
    panel.set_xscale("log")
    panel.set_xticks(sizes, [_size(n) for n in sizes])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.grid(axis="y", color="0.9", linewidth=0.5)
    panel.set_axisbelow(True)
    panel.set_xlabel("training records n")
    panel.set_ylabel(METRICS[metric])
    if "title" in spec:
        panel.set_title(spec["title"], loc="left")
    _, labels = panel.get_legend_handles_labels()
    place = legend_place(labels, _WIDTH)
    give_room(figure, labels, place)
    figure.legend(frameon=False, **place)
    return figure


def _size(n: int) -> str:
    """A tick's label.

    >>> [_size(n) for n in (815, 2500, 2512, 10_000)]
    ['815', '2.5K', '2512', '10K']
    """
    return f"{n / 1000:g}K" if n >= 1000 and n % 100 == 0 else str(n)
