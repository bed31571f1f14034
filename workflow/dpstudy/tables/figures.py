"""Accuracy against epsilon, one line per (features, method entry), as PDF, PNG and CSV."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib
import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from dpstudy.errors import StudyError
from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evaluation.metrics import METRICS
from dpstudy.evaluation.summary import cell_name, read_summary, values_by_cell
from dpstudy.files import atomic
from dpstudy.tables.layout import check_names
from dpstudy.tables.palette import style
from dpstudy.tables.published import lookup

CSV_HEADER = ("series", "dataset", "features", "entry", "epsilon", "metric", "mean", "std", "seeds")
_WIDTH, _HEIGHT = 6.3, 3.1  # inches: the text width of the usual one-column formats
_RC = {
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


@dataclass(frozen=True)
class Series:
    """One line: points are (epsilon, mean, std, number of seeds); published points have std None where unknown."""

    label: str
    dataset: str
    features: str
    entry: str
    points: tuple[tuple[str, float, float | None, int], ...]

    @property
    def published(self) -> bool:
        """Whether it is a paper's, not ours."""
        return not self.entry


def build_figure(
    name: str,
    spec: dict,
    study_axes: Mapping[str, list[str]],
    summary_path: str | os.PathLike,
    pdf_path: str | os.PathLike,
    png_path: str | os.PathLike,
    csv_path: str | os.PathLike,
) -> None:
    """Draw one figure of the config.

    Args:
        name: its key under `figures`.
        spec: its value there: dataset, features, entries, epsilons, metric, title, and `published`: a list of
            {column of the published results: value, label}. Absent features, entries and epsilons: the study's.
        study_axes: {"datasets", "features", "entries", "epsilons"}: the study's names, in config order.
        summary_path: summary.csv or summary.parquet.
        pdf_path, png_path, csv_path: what is written; the same bytes for the same content.

    Raises:
        StudyError: a name that the study does not have, or nothing to draw.
    """
    metric = spec.get("metric", "top1")
    series = collect(name, spec, study_axes, read_summary(summary_path))
    rows = ((s.label, s.dataset, s.features, s.entry, e, metric, *rest) for s in series for e, *rest in s.points)
    write_csv(csv_path, CSV_HEADER, rows)
    # The style "default" first: a user's matplotlibrc must not change the bytes.
    with matplotlib.style.context(["default", _RC]):
        figure = _draw(series, study_axes, metric, spec.get("title", ""))
        with atomic(pdf_path) as temporary:
            figure.savefig(temporary, format="pdf", metadata={"CreationDate": None})
        with atomic(png_path) as temporary:
            figure.savefig(temporary, format="png", dpi=200, metadata={"Software": None})


def collect(name: str, spec: dict, axes: Mapping[str, list[str]], summary: list[dict]) -> list[Series]:
    """The lines of a figure, in config order, the published ones last. See `build_figure`."""
    where, metric = f"figure {name}", spec.get("metric", "top1")
    dataset, epsilons = spec.get("dataset", axes["datasets"][0]), spec.get("epsilons", axes["epsilons"])
    features, entries = spec.get("features", axes["features"]), spec.get("entries", axes["entries"])
    for what, names, known in (
        ("data set", [dataset], "datasets"),
        ("features", features, "features"),
        ("entry", entries, "entries"),
        ("epsilon", epsilons, "epsilons"),
    ):
        check_names(where, what, names, axes[known])
    values = values_by_cell(summary, metric)
    series = []
    for kind in features:
        for entry in entries:
            runs = {epsilon: values.get(cell_name(dataset, kind, entry, epsilon)) for epsilon in epsilons}
            points = tuple((e, *mean_median_std(v)[::2], len(v)) for e, v in runs.items() if v)
            if points:
                series.append(Series(f"{entry}, {kind}", dataset, kind, entry, points))
    if not series:
        raise StudyError(f"{where}: no cell of the study has {metric!r} for its data set, features and entries")
    return series + [_published(where, epsilons, metric) for where in spec.get("published", [])]


def _published(spec: dict, epsilons: list[str], metric: str) -> Series:
    where = {"metric": metric, **{key: value for key, value in spec.items() if key != "label"}}
    found = [(epsilon, lookup(where, epsilon)) for epsilon in epsilons]
    points = tuple((e, p.value, p.std, 0) for e, p in found if p is not None and p.value is not None)
    default = " ".join(str(spec[key]) for key in ("paper", "model", "method") if key in spec)
    return Series(f"published: {spec.get('label', default)}", "", "", "", points)


def _draw(series: list[Series], axes: Mapping[str, list[str]], metric: str, title: str) -> Figure:
    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    plot = figure.add_subplot()
    epsilons = sorted({point[0] for line in series for point in line.points}, key=float)
    positions = _positions(epsilons)
    overlays = 0
    for line in series:
        if line.published:
            keywords = {"color": "0.25", "marker": "oDs^"[overlays % 4], "linestyle": "none", "zorder": 4}
            keywords |= {"markerfacecolor": "none", "markersize": 6}
            overlays += 1
        else:
            keywords = style(line.features, line.entry, axes) | {"markeredgecolor": "white", "markeredgewidth": 0.5}
        finite = sorted((point for point in line.points if point[0] != "inf"), key=lambda point: float(point[0]))
        unbounded = [point for point in line.points if point[0] == "inf"]
        label = line.label
        for part in (finite, unbounded):  # two strokes: no line runs across the break of the axis
            if part:
                x, y = [positions[point[0]] for point in part], [point[1] for point in part]
                spread = [point[2] or 0.0 for point in part]
                plot.errorbar(x, y, spread, label=label, capsize=2, elinewidth=0.7, capthick=0.7, **keywords)
                label = "_in the legend already"
    _finish(plot, positions, metric, title)
    figure.legend(*plot.get_legend_handles_labels(), loc="outside right upper", frameon=False, handlelength=2.8)
    return figure


def _positions(epsilons: list[str]) -> dict[str, float]:
    """Where each epsilon stands on the logarithmic axis; inf stands apart, after the last."""
    positions = {epsilon: float(epsilon) for epsilon in epsilons if epsilon != "inf"}
    if "inf" in epsilons:
        last, first = max(positions.values(), default=1.0), min(positions.values(), default=1.0)
        positions["inf"] = last * max(1.8, (last / first) ** 0.22)
    return positions


def _finish(plot, positions: dict[str, float], metric: str, title: str) -> None:
    plot.set_xscale("log")
    plot.set_xticks(list(positions.values()), ["∞" if e == "inf" else e for e in positions])
    plot.xaxis.set_minor_locator(NullLocator())
    if "inf" in positions and len(positions) > 1:
        between = (positions["inf"] * sorted(positions.values())[-2]) ** 0.5
        plot.axvline(between, color="0.75", linewidth=0.6, linestyle=(0, (4, 3)))
        slashes = {"marker": [(-0.5, -1), (0.5, 1)], "markersize": 6, "color": "0.2", "markeredgewidth": 0.6}
        for factor in (0.985, 1.015):
            x = between * factor
            plot.plot([x], [0], transform=plot.get_xaxis_transform(), clip_on=False, linestyle="none", **slashes)
    plot.margins(x=0.04)
    plot.grid(axis="y", color="0.9", linewidth=0.5)
    plot.set_axisbelow(True)
    plot.set_xlabel("privacy budget ε")
    plot.set_ylabel(METRICS[metric])
    if title:
        plot.set_title(title, loc="left")
