"""Accuracy against the number of training records (tramer2021, Figure 4), as PDF, PNG, SVG and CSV.

A line is one method entry on one feature set, a point one data set: the mean over seeds with its bar (`bars.py`).
n and the certified epsilon are the ledgers'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.metrics import metric_of
from dpstudy.evaluation.summary import values_by_cell
from dpstudy.tables.accuracies import UNDEFINED
from dpstudy.tables.bars import BARS, bar, factors, lengths
from dpstudy.tables.chance import chance_level, draw_chance
from dpstudy.tables.checks import check_cell
from dpstudy.tables.intervals import joined
from dpstudy.tables.keys import LINE, NAMES, mapping, several
from dpstudy.tables.names import line_label, marked
from dpstudy.tables.palette import colours, dashes, marker
from dpstudy.tables.panels import EDGED, finish, mark_places, panels_of, without_points
from dpstudy.tables.remarks import measured
from dpstudy.tables.selecting import cell_path
from dpstudy.tables.style import Drawn, FigureStyle, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpstudy.tables.results import Results

CSV_HEADER = (
    *("line", "dataset", "features", "entry", "epsilon", "n", "delta", "certified_epsilon"),
    *("metric", "mean", "std", "seeds", "low", "high"),
)
_HEIGHT = 3.1


@dataclass(frozen=True)
class Point:
    """One cell: its data set, public n, delta and certified epsilon (None: none), and the metric with its interval.

    The metric is the mean over its seeds.
    """

    dataset: str
    n: int
    delta: float
    certified: float | None
    mean: float
    std: float
    seeds: int
    interval: tuple[float, float] | None


def draw_sizes(name: str, spec: dict, results: Results) -> Drawn:
    """The figure of a spec.

    Raises:
        StudyError: a cell has no such metric, or two data sets of one line are of the same size.
    """
    metric = spec.get("metric", "top1")
    values = values_by_cell(results.summary, metric)
    points = [_points(f"figure {name}", spec, line, metric, values, results) for line in spec["lines"]]
    rows = (
        (_label(line, results.axes), point.dataset, line["features"], line["entry"], line["epsilon"], point.n)
        + (point.delta, point.certified, metric, point.mean, point.std, point.seeds)
        + (point.interval or (None, None))
        for line, mine in zip(spec["lines"], points, strict=True)
        for point in mine
    )
    if not any(points):
        return Drawn(CSV_HEADER, rows, without_points(f"{metric_of(metric).label}:\n{UNDEFINED}", _HEIGHT))
    return Drawn(CSV_HEADER, rows, draw(spec, points, results.axes, chance_level(metric, _cells(spec), results)))


def _label(line: dict, axes: Mapping[str, Sequence[str]]) -> str:
    label = line_label(line)
    return label if line["epsilon"] == "inf" else marked(label, line["entry"], axes)


def _points(where: str, spec: dict, line: dict, metric: str, values: Mapping, results: Results) -> list[Point]:
    """The points of one line, by n."""
    points = []
    for dataset in spec["datasets"]:
        cell = cell_path(line | {"dataset": dataset})
        if cell not in values:
            raise StudyError(f"{where}: the cell {cell} has no {metric!r}")
        if not values[cell]:
            continue  # its test records give the metric no value
        ledger, (mean, _, std) = results.ledger(cell), mean_median_std(values[cell])
        interval = joined(values[cell], results.interval(cell, metric), metric)
        public = dataset, ledger["n"], ledger["delta"], ledger["epsilon"]
        points.append(Point(*public, mean, std, len(values[cell]), interval))
    points.sort(key=lambda point: point.n)
    for one, other in zip(points, points[1:], strict=False):
        if one.n == other.n:
            raise StudyError(f"{where}: the data sets {one.dataset!r} and {other.dataset!r} both have {one.n} records")
    return points


def draw(
    spec: dict, points: list[list[Point]], axes: Mapping[str, Sequence[str]], chance: float | None = None
) -> Figure:
    """The figure: one panel, n on a logarithmic axis with a tick for each size; `chance` is the chance level."""
    from dpstudy.tables.lettering import place_legend

    metric, hues = spec.get("metric", "top1"), colours([line["entry"] for line in spec["lines"]], axes)
    figure, (panel,), _ = panels_of(1, 1, _HEIGHT)
    sizes = sorted({point.n for mine in points for point in mine})
    aside = factors(len(points), sizes)
    for line, mine, colour, dash, factor in zip(spec["lines"], points, hues, dashes(hues), aside, strict=True):
        keywords = marker(line["features"], axes["features"]) | {"color": colour, "linestyle": dash} | EDGED
        n, mean = [factor * point.n for point in mine], [point.mean for point in mine]
        spread = lengths(bar(point.mean, point.std, point.interval) for point in mine)
        panel.errorbar(n, mean, spread, label=_label(line, axes), capsize=2, elinewidth=0.7, **keywords)
    draw_chance({panel: chance})
    mark_places(panel, sizes, [_size(n) for n in sizes], alone=len(sizes) == 1)
    finish(panel, "training records n", metric_of(metric).label, spec.get("title", ""))
    place_legend(figure, panel)
    return figure


def _size(n: int) -> str:
    """A tick's label.

    >>> [_size(n) for n in (815, 2500, 2512, 10_000)]
    ['815', '2.5K', '2512', '10K']
    """
    return f"{n / 1000:g}K" if n >= 1000 and n % 100 == 0 else str(n)


def _cells(spec: Mapping) -> list[str]:
    pairs = ((line, dataset) for line in spec["lines"] for dataset in spec["datasets"])
    return list(dict.fromkeys(cell_path(line | {"dataset": dataset}) for line, dataset in pairs))


def _check(where: str, spec: dict, study: Study) -> None:
    for number, line in enumerate(spec["lines"]):
        for dataset in spec["datasets"]:
            check_cell(f"{where}.lines[{number}]", line | {"dataset": dataset}, study)


STYLE = FigureStyle(
    keys={
        "datasets": NAMES | {"description": "A point each."},
        "lines": several(mapping(("features", "entry", "epsilon"), **LINE), "Each is drawn over all the data sets."),
    },
    needs=("datasets", "lines"),
    check=_check,
    cells=lambda spec, study: _cells(spec),
    draw=draw_sizes,
    caption=lambda spec, axes, numbers: measured(
        spec, axes, numbers, "against the number of training records", f"mean over seeds, {BARS}"
    ),
)
