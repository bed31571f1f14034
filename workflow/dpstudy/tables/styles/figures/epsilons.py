"""Accuracy against epsilon, a panel per data set and a line per (features, method entry), as PDF, PNG, SVG and CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.metrics import metric_of
from dpstudy.evaluation.summary import cell_name, values_by_cell
from dpstudy.schema.messages import check_known
from dpstudy.tables.accuracies import UNDEFINED
from dpstudy.tables.bars import BARS, bar, factors, lengths
from dpstudy.tables.chance import draw_chance
from dpstudy.tables.checks import check_cited, check_labels, check_published
from dpstudy.tables.keys import CITED, COUNTERPARTS, EPSILONS, GROUPS, LABELS, NAMES, PUBLISHED, TEXT
from dpstudy.tables.names import enumerated, marked
from dpstudy.tables.panels import EDGED, WIDTH, finish, handles_of, mark_places, panels_of, without_points
from dpstudy.tables.published import combine, lookup
from dpstudy.tables.remarks import cited_remark, figure_remarks
from dpstudy.tables.selecting import crossed, like
from dpstudy.tables.series import Series, beside, chances_of, intervals_of, line_styles, marked_epsilons
from dpstudy.tables.style import Drawn, FigureStyle, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpstudy.tables.results import Results

CSV_HEADER = ("series", "dataset", "features", "entry", "epsilon", "metric", "mean", "std", "seeds", "low", "high")
Intervals = Mapping[str, tuple[float, float]]  # cell -> its ends
_COLUMNS = 3  # panels side by side
_HEIGHT, _PANEL_HEIGHT = 3.1, 2.6  # inches of a single row of panels, of each of several


def draw_epsilons(name: str, spec: dict, results: Results) -> Drawn:
    """The figure of a spec. Raises: as `collect`."""
    metric = spec.get("metric", "top1")
    series = collect(name, spec, results.axes, results.summary)
    gains = "gain_over" in spec
    intervals = {} if gains else intervals_of(series, results, metric)
    chances = {} if gains else chances_of(series, results, metric)
    rows = (
        (line.label, line.dataset, line.features, line.entry, epsilon, metric)
        + (*rest, *(_interval(line, epsilon, intervals) or (None, None)))
        for line in series
        for epsilon, *rest in line.points
    )
    measure = metric_of(metric).label + (f", gain over {spec['gain_over']}" if gains else "")
    if not series:
        return Drawn(CSV_HEADER, rows, without_points(f"{measure}:\n{UNDEFINED}", _HEIGHT))
    figure = draw(series, results.axes, measure, spec.get("title", ""), intervals, chances)
    return Drawn(CSV_HEADER, rows, figure)


def _interval(line: Series, epsilon: str, intervals: Intervals) -> tuple[float, float] | None:
    return intervals.get(cell_name(line.dataset, line.features, line.entry, epsilon))


def collect(name: str, spec: dict, axes: Mapping[str, list[str]], summary: list[dict]) -> list[Series]:
    """The lines of a figure, panel by panel in config order, published ones last; none of cells without a value.

    Args:
        name: its key under `figures`.
        spec: its value there; absent features, entries and epsilons: the study's.
        axes: {"datasets", "features", "entries", "epsilons"}: the study's names, in config order.
        summary: rows of the summary (`read_summary`).

    Raises:
        StudyError: nothing to draw.
    """
    metric = spec.get("metric", "top1")
    datasets = spec.get("datasets", [spec.get("dataset", axes["datasets"][0])])
    epsilons, entries = spec.get("epsilons", axes["epsilons"]), spec.get("entries", axes["entries"])
    groups = spec.get("groups") or [{"features": features} for features in spec.get("features", axes["features"])]
    values = values_by_cell(summary, metric)
    ours, published, known = [], [], False
    for dataset in datasets:
        for group in (group for group in groups if group.get("dataset", dataset) == dataset):
            features, kind = group["features"], group.get("label", group["features"])
            for entry in entries:
                runs = {e: _values(values, dataset, features, entry, e, spec.get("gain_over")) for e in epsilons}
                points = tuple((e, *mean_median_std(v)[::2], len(v)) for e, v in runs.items() if v)
                known = known or any(v is not None for v in runs.values())
                if points:
                    alone = "groups" in spec and len(entries) == 1
                    label = marked(kind if alone else _label(spec, features, entry, kind), entry, axes)
                    ours.append(Series(label, kind, dataset, features, entry, points))
            published += _published(combine(spec, dataset, group), kind, dataset, epsilons, metric)
    if not ours and not known:
        raise StudyError(f"figure {name}: no cell of the study has {metric!r} for its data set, features and entries")
    for row in spec.get("cited", []):
        lines = _published(combine(spec, spec["dataset"], row), row["label"], spec["dataset"], epsilons, metric)
        published += [replace(line, label=row["label"], cited=True) for line in lines]
    return ours + published


def _label(spec: dict, features: str, entry: str, kind: str) -> str:
    labels = spec.get("labels", {})
    whole = {} if "groups" in spec else labels  # groups have labels of features
    return whole.get(f"{features}/{entry}", f"{labels.get(entry, entry)}, {kind}")


def _values(
    values: dict, dataset: str, features: str, entry: str, epsilon: str, base: str | None
) -> list[float] | None:
    """A cell's values, seed by seed; what they have more than those of the feature set `base`, where there is one."""
    cell_values = values.get(cell_name(dataset, features, entry, epsilon))
    if base is None or not cell_values:
        return cell_values
    other = values.get(cell_name(dataset, base, entry, epsilon))
    if features == base or not other:
        return None
    return [mine - its for mine, its in zip(cell_values, other, strict=True)]


def _published(filters: dict | None, kind: str, dataset: str, epsilons: list[str], metric: str) -> list[Series]:
    if filters is None:
        return []
    numbers = [(epsilon, lookup({"metric": metric, **filters}, epsilon)) for epsilon in epsilons]
    points = tuple((e, p.value, p.std, 0) for e, p in numbers if p is not None and p.value is not None)
    return [Series(f"published: {kind}", kind, dataset, "", "", points, published=True)]


def draw(
    series: list[Series],
    axes: Mapping[str, list[str]],
    measure: str,
    title: str,
    intervals: Intervals = MappingProxyType({}),
    chances: Mapping[str, float | None] = MappingProxyType({}),
) -> Figure:
    """The figure: one panel per data set, on a logarithmic axis with a break before epsilon = inf.

    Bars are the cells' intervals, or one standard deviation of what has none; `chances` are data sets' chance levels.
    """
    from matplotlib.lines import Line2D

    from dpstudy.tables.lettering import give_room, legend_columns, legend_place

    datasets = list(dict.fromkeys(line.dataset for line in series))
    several = len(datasets) > 1
    height = _HEIGHT if len(datasets) <= _COLUMNS else _PANEL_HEIGHT
    figure, panels, columns = panels_of(len(datasets), _COLUMNS, height, title=(several and title) or None)
    styles = line_styles(series, axes)
    for panel, dataset in zip(panels, datasets, strict=True):
        _draw_panel(panel, [line for line in series if line.dataset == dataset], styles, intervals, columns)
        if several:  # narrow: the labels of 0.05 and 0.1 would touch
            panel.tick_params(axis="x", labelsize=6.5, labelrotation=60)
        panel.margins(x=0.04)
        finish(panel, "privacy budget ε", measure, dataset if several else title)
    draw_chance({panel: chances.get(dataset) for panel, dataset in zip(panels, datasets, strict=True)})
    handles = handles_of(panels)
    if any(line.published and not line.cited for line in series):
        handles["published"] = Line2D([], [], color="0.25", marker="o", linestyle="none", markerfacecolor="none")
    place = legend_place(handles, WIDTH)
    if several:
        place = {"loc": "outside lower center", "ncols": legend_columns(handles, WIDTH)}
    give_room(figure, handles, place)
    figure.legend(handles.values(), handles.keys(), frameon=False, handlelength=2.8, **place)
    return figure


def _draw_panel(
    panel: Axes, series: list[Series], styles: dict[tuple[str, str], dict], intervals: Intervals, columns: int
) -> None:
    positions = _positions(sorted({point[0] for line in series for point in line.points}, key=float))
    marked_there = marked_epsilons(series)
    aside = factors(len(series), [x for epsilon, x in positions.items() if epsilon in marked_there], columns)
    for line, factor in zip(series, aside, strict=True):
        if line.published:
            of_kind = beside(line, styles)
            keywords = {"color": of_kind.get("color", "0.25"), "marker": of_kind.get("marker", "o"), "zorder": 4}
            keywords |= {"linestyle": "none", "markerfacecolor": "none", "markersize": 6}
        else:
            keywords = styles[line.kind, line.entry] | EDGED
        finite = sorted((point for point in line.points if point[0] != "inf"), key=lambda point: float(point[0]))
        unbounded = [point for point in line.points if point[0] == "inf"]
        label = "_published" if line.published and not line.cited else line.label
        for part in (finite, unbounded):  # two strokes: no line runs across the break of the axis
            if part:
                x, y = [factor * positions[point[0]] for point in part], [point[1] for point in part]
                spread = [bar(mean, std, _interval(line, e, intervals)) for e, mean, std, _ in part]
                panel.errorbar(x, y, lengths(spread), label=label, capsize=2, elinewidth=0.7, capthick=0.7, **keywords)
                label = "_in the legend already"
    _mark_epsilons(panel, positions, marked_there)


def _positions(epsilons: list[str]) -> dict[str, float]:
    """Where each epsilon stands on the logarithmic axis; inf stands apart, after the last."""
    positions = {epsilon: float(epsilon) for epsilon in epsilons if epsilon != "inf"}
    if "inf" in epsilons:
        last, first = max(positions.values(), default=1.0), min(positions.values(), default=1.0)
        positions["inf"] = last * max(1.8, (last / first) ** 0.22)
    return positions


def _mark_epsilons(panel: Axes, positions: dict[str, float], marked: set[str]) -> None:
    ticks = {("∞" if epsilon == "inf" else epsilon): x for epsilon, x in positions.items() if epsilon in marked}
    mark_places(panel, list(ticks.values()), list(ticks), alone=len(positions) == 1)
    if "inf" in positions and len(positions) > 1:
        between = (positions["inf"] * sorted(positions.values())[-2]) ** 0.5
        panel.axvline(between, color="0.75", linewidth=0.6, linestyle=(0, (4, 3)))
        slash: dict[str, Any] = {"marker": [(-0.5, -1), (0.5, 1)], "markersize": 6, "markeredgewidth": 0.6}
        slash |= {"transform": panel.get_xaxis_transform(), "clip_on": False, "linestyle": "none", "color": "0.2"}
        for factor in (0.985, 1.015):
            panel.plot([between * factor], [0], **slash)


def _check(place: str, spec: dict, study: Study) -> None:
    if ("dataset" in spec) == ("datasets" in spec):
        raise StudyError(f"{place}: give exactly one of 'dataset', 'datasets'")
    if "groups" in spec and "features" in spec:
        raise StudyError(f"{place}: give either 'features' or 'groups', which name features with labels")
    if "gain_over" in spec:
        check_known(f"{place}.gain_over", spec["gain_over"], study.config["features"], "feature set")
        if {"published", "counterparts", "cited"} & spec.keys():
            raise StudyError(f"{place}.gain_over: published values are no gains; leave one of the two out")
    check_labels(place, spec, study)
    check_cited(place, spec, study)
    check_published(place, spec, study)


def _cells(spec: Mapping, study: Study) -> list[str]:
    drawn = like(study.cells, spec, crossed(spec))
    if "gain_over" not in spec:
        return drawn
    base = {key: value for key, value in spec.items() if key != "features"} | {"features": spec["gain_over"]}
    patterns = [{axis: names for axis, names in one.items() if axis != "features"} for one in crossed(spec)]
    wanted = {*drawn, *like(study.cells, base, patterns)}
    return [name for name in study.cells if name in wanted]


def _caption(spec: Mapping, axes: Mapping, numbers: str) -> tuple[str, str]:
    metric = metric_of(spec.get("metric", "top1")).label
    kinds, entries = (enumerated(spec.get(axis, axes[axis])) for axis in ("features", "entries"))
    more = cited_remark(spec) + figure_remarks(spec, axes)
    bars = "bars are one standard deviation over seeds" if "gain_over" in spec else BARS
    return (
        f"{metric} against the target ε; mean over seeds, {bars}.{more}",
        f"{metric} against the privacy budget epsilon for {entries} on {kinds}; {numbers}.",
    )


STYLE = FigureStyle(
    keys={
        "dataset": TEXT,
        "datasets": NAMES | {"description": "A panel each."},
        "features": NAMES,
        "groups": GROUPS | {"description": "Instead of features: with labels and published values."},
        "entries": NAMES,
        "labels": LABELS,
        "epsilons": EPSILONS,
        "published": PUBLISHED,
        "counterparts": COUNTERPARTS,
        "cited": CITED,
        "gain_over": TEXT
        | {"description": "A feature set: how much more the others have than it, entry by entry, epsilon by epsilon."},
    },
    check=_check,
    cells=_cells,
    documents=lambda spec, study: {} if "gain_over" in spec else {"metrics": _cells(spec, study)},
    draw=draw_epsilons,
    caption=_caption,
    series=collect,
)
