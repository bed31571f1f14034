"""Noise against epsilon or against the sampling rate (tramer2021, Figures 9 and 6): accounting alone, no cell, as PDF,
PNG and CSV."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.privacy.noise_levels import noise_level
from dpstudy.tables.figures import RC, save
from dpstudy.tables.palette import COLOURS, MARKERS

CSV_HEADER = (
    "series", "algorithm", "accounting", "epsilon", "delta", "epochs", "records", "batch_size", "sampling_rate",
    "noise_multiplier", "fitted",
)  # fmt: skip
X_LABELS = {"epsilon": "privacy budget ε", "sampling_rate": "sampling rate B/n"}
Y_LABEL = "noise multiplier σ\n(noise on the sum / bound on a record's gradient)"
_WIDTH, _HEIGHT = 6.3, 3.6


@dataclass(frozen=True)
class Series:
    """One line: (epsilon, batch size, sampling rate, noise multiplier or None where none suffices) of each point.

    `constant` is c of the curve c sqrt(B/n) that fits the points best on a logarithmic axis; None along epsilon.
    """

    label: str
    algorithm: str
    accounting: str
    points: tuple[tuple[str, int, float, float | None], ...]
    constant: float | None


def build_noise_figure(
    name: str, spec: dict, pdf_path: str | os.PathLike, png_path: str | os.PathLike, csv_path: str | os.PathLike
) -> None:
    """Draw one figure of style `noise`.

    Args:
        name: its key under `figures`.
        spec: its value there: x, noise ({delta, epochs, records, series}), title.
        pdf_path, png_path, csv_path: what is written; the same bytes for the same content.

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
    write_csv(csv_path, CSV_HEADER, rows)
    with matplotlib.style.context(["default", RC]):
        save(draw(lines, spec), pdf_path, png_path)


def collect(series: Mapping, noise: Mapping, x: str) -> Series:
    """The noise at each epsilon and batch size of one entry of `series`."""
    delta, facts = float(noise["delta"]), {key: noise[key] for key in ("records", "epochs")}
    points = []
    for epsilon in series["epsilons"]:
        for batch in series["batch_sizes"]:
            try:
                how = series["algorithm"], series["accounting"]
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
    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    panel = figure.subplots()
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
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    panel.grid(color="0.9", linewidth=0.5)
    panel.set_axisbelow(True)
    panel.set_xlabel(X_LABELS[spec["x"]])
    panel.set_ylabel(Y_LABEL)
    if "title" in spec:
        panel.set_title(spec["title"], loc="left")
    figure.legend(frameon=False, loc="outside lower center", ncols=3)
    return figure
