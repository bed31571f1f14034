"""Noise multiplier against epsilon or sampling rate (tramer2021, Figures 9 and 6), by accounting alone.

No cell is read. Written as PDF, PNG and CSV.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpstudy.core.errors import StudyError
from dpstudy.tables.keys import EPSILONS, TEXT, mapping, several
from dpstudy.tables.palette import COLOURS, MARKERS
from dpstudy.tables.panels import decades, finish, panels_of
from dpstudy.tables.style import Drawn, FigureStyle, Study, nothing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpstudy.tables.results import Results

CSV_HEADER = (
    *("series", "algorithm", "accounting", "epsilon", "delta", "epochs", "records", "batch_size", "sampling_rate"),
    *("noise_multiplier", "fitted"),
)
X_LABELS = {"epsilon": "privacy budget ε", "sampling_rate": "sampling rate B/n"}
Y_LABEL = "noise multiplier σ\n(noise on the sum / bound on a record's gradient)"
_HEIGHT = 3.6


@dataclass(frozen=True)
class Series:
    """One line, with (epsilon, batch size, sampling rate, noise multiplier or None where none suffices) of each point.

    `constant` is c of the curve c sqrt(B/n) that fits the points best on a logarithmic axis; None along epsilon.
    """

    label: str
    algorithm: str
    accounting: str
    points: tuple[tuple[str, int, float, float | None], ...]
    constant: float | None


def draw_noise(name: str, spec: dict, results: Results) -> Drawn:
    """The figure of a spec.

    Raises:
        StudyError: no series has a point.
    """
    noise = spec["noise"]
    lines = [collect(series, noise, spec["x"]) for series in noise["series"]]
    if not any(point[3] for line in lines for point in line.points):
        raise StudyError(f"figure {name}: no amount of noise reaches any of its budgets")
    shared = (noise["delta"], noise["epochs"], noise["records"])
    rows = (
        (line.label, line.algorithm, line.accounting, epsilon, *shared, batch, rate, level, _fitted(line, rate))
        for line in lines
        for epsilon, batch, rate, level in line.points
    )
    return Drawn(CSV_HEADER, rows, draw(lines, spec))


def collect(series: Mapping, noise: Mapping, x: str) -> Series:
    """The noise multipliers at each epsilon and batch size of one entry of `series`."""
    from dpstudy.privacy.noise_levels import noise_level

    delta, facts = float(noise["delta"]), {key: noise[key] for key in ("records", "epochs")}
    points, how = [], (series["algorithm"], series["accounting"])
    for epsilon, batch in itertools.product(series["epsilons"], series["batch_sizes"]):
        try:
            level = noise_level(*how, epsilon, delta, batch_size=batch, **facts)
        except StudyError:
            level = None
        points.append((epsilon, batch, batch / noise["records"], level))
    constant = None
    if x == "sampling_rate":
        ratios = [math.log(level / math.sqrt(rate)) for _, _, rate, level in points if level]
        constant = math.exp(sum(ratios) / len(ratios)) if ratios else None
    label = series.get("label", f"{series['algorithm']}, {series['accounting']}")
    return Series(label, *how, tuple(points), constant)


def _fitted(line: Series, rate: float) -> float | str:
    return "" if line.constant is None else line.constant * math.sqrt(rate)


def draw(lines: list[Series], spec: dict) -> Figure:
    """The figure: both axes logarithmic, fitted curves dashed."""
    from matplotlib.ticker import NullFormatter

    figure, (panel,), _ = panels_of(1, 1, _HEIGHT)
    for number, line in enumerate(lines):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        known = [point for point in line.points if point[3]]
        x = [float(point[0]) if spec["x"] == "epsilon" else point[2] for point in known]
        dots = "none" if line.constant is not None else "-"
        levels = [level for _, _, _, level in line.points if level]
        panel.plot(x, levels, label=line.label, color=colour, marker=marker, linestyle=dots)
        if line.constant is not None:
            fit = f"{line.constant:.1f} $\\sqrt{{B/n}}$"
            panel.plot(x, [_fitted(line, rate) for rate in x], label=fit, color=colour, linestyle="--")
    panel.set_xscale("log")
    panel.set_yscale("log")
    for axis in (panel.xaxis, panel.yaxis):
        decades(axis)
        axis.set_minor_formatter(NullFormatter())
    finish(panel, X_LABELS[spec["x"]], Y_LABEL, spec.get("title", ""))
    panel.grid(axis="x", color="0.9", linewidth=0.5)
    figure.legend(frameon=False, loc="outside lower center", ncols=3)
    return figure


def _check(place: str, spec: dict, study: Study) -> None:
    """Each series varies along the axis alone."""
    for number, series in enumerate(spec["noise"]["series"]):
        where = f"{place}.noise.series[{number}]"
        fixed = "batch_sizes" if spec["x"] == "epsilon" else "epsilons"
        if len(series[fixed]) != 1:
            raise StudyError(f"{where}.{fixed}: {len(series[fixed])} of them, but x is {spec['x']!r}: give one")
        for batch in series["batch_sizes"]:
            if batch > spec["noise"]["records"]:
                raise StudyError(f"{where}.batch_sizes: {batch} exceeds the {spec['noise']['records']} records")
        if "inf" in series["epsilons"]:
            raise StudyError(f"{where}.epsilons: 'inf' needs no noise; leave it out")
        if series["algorithm"] == "iteration-secret" and series["accounting"] != "certified":
            raise StudyError(f"{where}.accounting: {series['accounting']!r} knows no secret order; use 'certified'")


_COUNT = {"type": "integer", "minimum": 1}
_SERIES = mapping(
    ("algorithm", "epsilons", "batch_sizes"),
    label=TEXT,
    algorithm={
        "description": "dp-sgd with Poisson sampling; iteration: 99 % of the records have the budget, in a known order "
        "of batches; iteration-secret: all have it, the order being random and hidden.",
        "enum": ["dp-sgd", "iteration", "iteration-secret"],
    },
    accounting={
        "description": "certified: PLD for dp-sgd, exact Gaussian DP for iteration. tramer2021: Renyi DP with the old "
        "conversion; for iteration one record is replaced and batches count as equal.",
        "enum": ["certified", "tramer2021"],
        "default": "certified",
    },
    epsilons=EPSILONS,
    batch_sizes=several(_COUNT),
)
STYLE = FigureStyle(
    keys={
        "x": {"enum": list(X_LABELS), "description": "Along sampling_rate c sqrt(B/n) is fitted."},
        "noise": mapping(
            ("delta", "epochs", "records", "series"),
            delta={"$ref": "#/$defs/delta"},
            epochs=_COUNT,
            records=_COUNT | {"description": "n."},
            series=several(_SERIES, "A line each, along its epsilons or its batch sizes."),
        ),
    },
    needs=("x", "noise"),
    check=_check,
    cells=nothing,
    documents=(),
    draw=draw_noise,
    caption=lambda spec, axes, numbers: (
        "noise on a sum of gradients, in units of the bound on a record's gradient.",
        f"noise multipliers; {numbers}.",
    ),
    measures=False,
)
