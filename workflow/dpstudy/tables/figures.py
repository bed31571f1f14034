"""Accuracy against epsilon, a panel per data set and a line per (features, method entry), as PDF, PNG and CSV."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import matplotlib
import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic
from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evaluation.metrics import METRICS
from dpstudy.evaluation.summary import cell_name, read_summary, values_by_cell
from dpstudy.tables.lettering import give_room, keep_inside, legend_columns, legend_place
from dpstudy.tables.names import check_names, marked
from dpstudy.tables.palette import COLOURS, MARKERS, colours, marker
from dpstudy.tables.published import combine, lookup

CSV_HEADER = ("series", "dataset", "features", "entry", "epsilon", "metric", "mean", "std", "seeds")
_WIDTH, _HEIGHT = 6.3, 3.1  # inches: the text width of the usual one-column formats
_COLUMNS, _PANEL_HEIGHT = 3, 2.6  # panels side by side; inches a row of panels where there are several rows
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


@dataclass(frozen=True)
class Series:
    """One line of one panel. Its points are (epsilon, mean, std, number of seeds).

    `kind` tells the features apart (a group's label, else the features' name). `published`: the values are a paper's,
    std is None where unknown, and the number of seeds 0. `cited`: they are a paper's and stand beside no line of ours.
    """

    label: str
    kind: str
    dataset: str
    features: str
    entry: str
    points: tuple[tuple[str, float, float | None, int], ...]
    published: bool = False
    cited: bool = False


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
        spec: its value there: dataset or datasets (a panel each), groups or features, entries, epsilons, metric,
            title, published, counterparts, cited, gain_over. Absent features, entries and epsilons: the study's.
        study_axes: {"datasets", "features", "entries", "epsilons"}: the study's names, in config order.
        summary_path: summary.csv or summary.parquet.
        pdf_path, png_path, csv_path: what is written; the same bytes for the same content.

    Raises:
        StudyError: a name that the study does not have, or nothing to draw.
    """
    metric = spec.get("metric", "top1")
    series = collect(name, spec, study_axes, read_summary(summary_path))
    rows = (
        (line.label, line.dataset, line.features, line.entry, epsilon, metric, *rest)
        for line in series
        for epsilon, *rest in line.points
    )
    write_csv(csv_path, CSV_HEADER, rows)
    # The style "default" first: a user's matplotlibrc must not change the bytes.
    with matplotlib.style.context(["default", RC]):
        save(draw(series, study_axes, _axis(metric, spec), spec.get("title", "")), pdf_path, png_path)


def _axis(metric: str, spec: dict) -> str:
    return f"{METRICS[metric]}, gain over {spec['gain_over']}" if "gain_over" in spec else METRICS[metric]


def save(figure: Figure, pdf_path: str | os.PathLike, png_path: str | os.PathLike) -> None:
    """Write a figure, its titles broken where they are too long: the same bytes for the same content."""
    keep_inside(figure)
    with atomic(pdf_path) as temporary:
        figure.savefig(temporary, format="pdf", metadata={"CreationDate": None})
    with atomic(png_path) as temporary:
        figure.savefig(temporary, format="png", dpi=200, metadata={"Software": None})


def collect(name: str, spec: dict, axes: Mapping[str, list[str]], summary: list[dict]) -> list[Series]:
    """The lines of a figure, panel by panel in config order, the published ones last. See `build_figure`."""
    where, metric = f"figure {name}", spec.get("metric", "top1")
    datasets = spec.get("datasets", [spec.get("dataset", axes["datasets"][0])])
    epsilons, entries = spec.get("epsilons", axes["epsilons"]), spec.get("entries", axes["entries"])
    groups = spec.get("groups") or [{"features": features} for features in spec.get("features", axes["features"])]
    for what, names, known in (
        ("data set", datasets, "datasets"),
        ("features", [group["features"] for group in groups], "features"),
        ("entry", entries, "entries"),
        ("epsilon", [] if "cited" in spec else epsilons, "epsilons"),  # papers have epsilons of their own
        ("features", [spec["gain_over"]] if "gain_over" in spec else [], "features"),
    ):
        check_names(where, what, names, axes[known])
    values = values_by_cell(summary, metric)
    ours, published = [], []
    for dataset in datasets:
        for group in (group for group in groups if group.get("dataset", dataset) == dataset):
            features, kind = group["features"], group.get("label", group["features"])
            for entry in entries:
                runs = {e: _values(values, dataset, features, entry, e, spec.get("gain_over")) for e in epsilons}
                points = tuple((e, *mean_median_std(v)[::2], len(v)) for e, v in runs.items() if v)
                label = kind if "groups" in spec and len(entries) == 1 else f"{entry}, {kind}"
                if points:
                    label = marked(label, entry, axes)
                    ours.append(Series(label, kind, dataset, features, entry, points))
            published += _published(combine(spec, dataset, group), kind, dataset, epsilons, metric)
    if not ours:
        raise StudyError(f"{where}: no cell of the study has {metric!r} for its data set, features and entries")
    for row in spec.get("cited", []):
        found = _published(combine(spec, spec["dataset"], row), row["label"], spec["dataset"], epsilons, metric)
        published += [replace(line, label=row["label"], cited=True) for line in found]
    return ours + published


def _values(
    values: dict, dataset: str, features: str, entry: str, epsilon: str, base: str | None
) -> list[float] | None:
    """A cell's values, seed by seed; what they have more than those of the feature set `base`, where there is one."""
    found = values.get(cell_name(dataset, features, entry, epsilon))
    if base is None or found is None:
        return found
    other = values.get(cell_name(dataset, base, entry, epsilon))
    if features == base or other is None:
        return None
    return [mine - its for mine, its in zip(found, other, strict=True)]


def _published(filters: dict | None, kind: str, dataset: str, epsilons: list[str], metric: str) -> list[Series]:
    if filters is None:
        return []
    found = [(epsilon, lookup({"metric": metric, **filters}, epsilon)) for epsilon in epsilons]
    points = tuple((e, p.value, p.std, 0) for e, p in found if p is not None and p.value is not None)
    return [Series(f"published: {kind}", kind, dataset, "", "", points, published=True)]


def draw(series: list[Series], axes: Mapping[str, list[str]], measure: str, title: str) -> Figure:
    """What is measured, one panel per data set, on a logarithmic axis that breaks before epsilon = inf."""
    datasets = list(dict.fromkeys(line.dataset for line in series))
    columns = min(len(datasets), _COLUMNS)
    rows = -(-len(datasets) // columns)
    figure = Figure(figsize=(_WIDTH, _HEIGHT if rows == 1 else _PANEL_HEIGHT * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    styles = line_styles(series, axes)
    for i, (panel, dataset) in enumerate(zip(panels, datasets, strict=False)):
        _draw_panel(panel, [line for line in series if line.dataset == dataset], styles)
        if len(datasets) > 1:  # narrow: the labels of 0.05 and 0.1 would touch
            panel.tick_params(axis="x", labelsize=6.5, labelrotation=60)
        _finish(panel, measure if i % columns == 0 else None, dataset if len(datasets) > 1 else title)
    for panel in panels[len(datasets) :]:
        panel.set_axis_off()
    handles = {label: h for p in panels for h, label in zip(*p.get_legend_handles_labels(), strict=True)}
    if any(line.published and not line.cited for line in series):
        handles["published"] = Line2D([], [], color="0.25", marker="o", linestyle="none", markerfacecolor="none")
    place = legend_place(handles, figure.get_figwidth())
    if len(datasets) > 1:
        place = {"loc": "outside lower center", "ncols": legend_columns(handles, figure.get_figwidth())}
    give_room(figure, handles, place)
    figure.legend(handles.values(), handles.keys(), frameon=False, handlelength=2.8, **place)
    if title and len(datasets) > 1:
        figure.suptitle(title, fontsize=9)
    return figure


def line_styles(series: list[Series], axes: Mapping[str, list[str]]) -> dict[tuple[str, str], dict]:
    """(kind, entry) -> Matplotlib keywords; with a single entry the kinds of features differ in colour too.

    What is cited has no entry: grey, told apart by its markers.
    """
    pairs = list(dict.fromkeys((line.kind, line.entry) for line in series if line.entry))
    kinds = list(dict.fromkeys(kind for kind, _ in pairs))
    if set(kinds) <= set(axes["features"]):  # else labels of groups: told apart by their order
        kinds = axes["features"]
    found = colours([entry for _, entry in pairs], axes)
    looks = [(kind, colour) for (kind, _), colour in zip(pairs, found, strict=True)]
    laps = [looks[:number].count(look) for number, look in enumerate(looks)]
    cited = dict.fromkeys(line.kind for line in series if line.cited)
    aside = {
        (kind, ""): {"color": COLOURS[-1], "marker": MARKERS[number % len(MARKERS)]}
        for number, kind in enumerate(cited)
    }
    return {
        pair: {"color": colour} | marker(kind, kinds, lap)
        for pair, (kind, colour), lap in zip(pairs, looks, laps, strict=True)
    } | aside


def beside(line: Series, styles: Mapping[tuple[str, str], Mapping]) -> Mapping:
    """The style of what is published: that of our line of its kind, or its own where it is cited."""
    if line.cited:
        return styles[line.kind, ""]
    return next((keywords for (kind, entry), keywords in styles.items() if kind == line.kind and entry), {})


def _draw_panel(panel: Axes, series: list[Series], styles: dict[tuple[str, str], dict]) -> None:
    positions = _positions(sorted({point[0] for line in series for point in line.points}, key=float))
    for line in series:
        if line.published:
            of_kind = beside(line, styles)
            keywords = {"color": of_kind.get("color", "0.25"), "marker": of_kind.get("marker", "o"), "zorder": 4}
            keywords |= {"linestyle": "none", "markerfacecolor": "none", "markersize": 6}
        else:
            keywords = styles[line.kind, line.entry] | {"markeredgecolor": "white", "markeredgewidth": 0.5}
        finite = sorted((point for point in line.points if point[0] != "inf"), key=lambda point: float(point[0]))
        unbounded = [point for point in line.points if point[0] == "inf"]
        label = "_published" if line.published and not line.cited else line.label
        for part in (finite, unbounded):  # two strokes: no line runs across the break of the axis
            if part:
                x, y = [positions[point[0]] for point in part], [point[1] for point in part]
                known = any(point[2] is not None for point in part)
                spread = [point[2] or 0.0 for point in part] if known else None
                panel.errorbar(x, y, spread, label=label, capsize=2, elinewidth=0.7, capthick=0.7, **keywords)
                label = "_in the legend already"
    _mark_epsilons(panel, positions, marked_epsilons(series))


def _positions(epsilons: list[str]) -> dict[str, float]:
    """Where each epsilon stands on the logarithmic axis; inf stands apart, after the last."""
    positions = {epsilon: float(epsilon) for epsilon in epsilons if epsilon != "inf"}
    if "inf" in epsilons:
        last, first = max(positions.values(), default=1.0), min(positions.values(), default=1.0)
        positions["inf"] = last * max(1.8, (last / first) ** 0.22)
    return positions


def marked_epsilons(series: Sequence[Series]) -> set[str]:
    """The epsilons that an axis names: our own, and infinity; others that a paper prints lie between, and are many."""
    return {point[0] for line in series for point in line.points if not line.cited or point[0] == "inf"}


def _mark_epsilons(panel: Axes, positions: dict[str, float], marked: set[str]) -> None:
    panel.set_xscale("log")
    ticks = {("∞" if epsilon == "inf" else epsilon): x for epsilon, x in positions.items() if epsilon in marked}
    panel.set_xticks(list(ticks.values()), list(ticks))
    panel.xaxis.set_minor_locator(NullLocator())
    if "inf" in positions and len(positions) > 1:
        between = (positions["inf"] * sorted(positions.values())[-2]) ** 0.5
        panel.axvline(between, color="0.75", linewidth=0.6, linestyle=(0, (4, 3)))
        slashes: dict[str, Any] = {"marker": [(-0.5, -1), (0.5, 1)], "markersize": 6, "markeredgewidth": 0.6}
        for factor in (0.985, 1.015):
            x = between * factor
            panel.plot(
                [x], [0], transform=panel.get_xaxis_transform(), clip_on=False, linestyle="none", color="0.2", **slashes
            )


def _finish(panel: Axes, measure: str | None, title: str) -> None:
    panel.margins(x=0.04)
    panel.grid(axis="y", color="0.9", linewidth=0.5)
    panel.set_axisbelow(True)
    panel.set_xlabel("privacy budget ε")
    if measure:
        panel.set_ylabel(measure)
    if title:
        panel.set_title(title, loc="left")
