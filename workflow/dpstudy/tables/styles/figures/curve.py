"""Training curves: accuracy against epochs, steps or the epsilon spent so far, as PDF, PNG, SVG and CSV.

A line is one cell: the mean over seeds of each evaluated step, with a band of one standard deviation. What a paper
prints at single epsilons may stand beside the lines, as points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_table
from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.metrics import metric_of, names
from dpstudy.schema.messages import check_known
from dpstudy.schema.methods import method_schema
from dpstudy.tables.chance import chance_level, draw_chance
from dpstudy.tables.checks import check_cell, check_label
from dpstudy.tables.grouping import by_key
from dpstudy.tables.keys import CITED, LINE, TEXT, mapping, several
from dpstudy.tables.palette import COLOURS, MARKERS, colours, dashes
from dpstudy.tables.panels import WIDTH, finish, handles_of, panels_of
from dpstudy.tables.published import along_epsilon
from dpstudy.tables.remarks import measured
from dpstudy.tables.selecting import AXES, cell_path, like, named
from dpstudy.tables.style import Drawn, FigureStyle, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpstudy.tables.results import Results

CSV_HEADER = ("panel", "line", "dataset", "features", "entry", "epsilon", "step", "x", "metric", "mean", "std", "seeds")
X_LABELS = {"epoch": "epochs", "step": "steps", "epsilon": "privacy budget spent, ε"}
_PANEL_HEIGHT, _COLUMNS = 2.7, 3


@dataclass(frozen=True)
class Curve:
    """One line: (step, x, mean, std, number of seeds) in the order of steps, coloured like the label `like`."""

    panel: str
    label: str
    cell: Mapping[str, str]
    points: tuple[tuple[int | str, float, float, float | None, int], ...]
    like: str = ""

    @property
    def cited(self) -> bool:
        """Whether the line is a paper's printed numbers rather than a cell."""
        return not self.cell["entry"]


def draw_curves(name: str, spec: dict, results: Results) -> Drawn:
    """The figure of a spec: panels of lines, with cited numbers beside those of a single panel.

    Raises:
        StudyError: a cell has no such metric, or x is the epsilon of a cell without noise.
    """
    metric, x = spec.get("metric", "top1"), spec.get("x", "epoch")
    lines = [(panel.get("title", ""), line) for panel in spec["panels"] for line in panel["lines"]]
    curves = [_read(f"figure {name}", title, line, x, metric, results) for title, line in lines]
    curves += [_cited(spec["panels"][0].get("title", ""), row, metric) for row in spec.get("cited", [])]
    rows = (
        (curve.panel, curve.label, *curve.cell.values(), step, where, metric, *rest)
        for curve in curves
        for step, where, *rest in curve.points
    )
    chances = [chance_level(metric, map(cell_path, panel["lines"]), results) for panel in spec["panels"]]
    return Drawn(CSV_HEADER, rows, draw(curves, spec, results.axes, chances))


def _read(where: str, panel: str, line: dict, x: str, metric: str, results: Results) -> Curve:
    cell = {axis: line[axis] for axis in AXES}
    name = cell_path(line)
    rate = read_json(results.metrics[name])["hyperparameters"].get("sampling_rate", 1.0)
    rows = read_table(results.curves[name], ["step", "epsilon_spent", "metric", "value"]).to_pylist()
    by_step = by_key((row for row in rows if row["metric"] == metric), itemgetter("step"))
    if not by_step:
        has = ", ".join(sorted({row["metric"] for row in rows}))
        raise StudyError(f"{where}: the curve of {name} has no {metric!r}; it has {has}")
    spent = {step: of_step[-1]["epsilon_spent"] for step, of_step in by_step.items()}
    if x == "epsilon" and None in spent.values():
        raise StudyError(f"{where}: {name} adds no noise, so it has no epsilon to plot against")
    place = {step: {"step": step, "epoch": step * rate, "epsilon": spent[step]}[x] for step in by_step}
    values = [(step, [row["value"] for row in of_step]) for step, of_step in sorted(by_step.items())]
    points = tuple((step, float(place[step]), *mean_median_std(of)[::2], len(of)) for step, of in values)
    return Curve(panel, line.get("label", line["entry"]), cell, points, line.get("like", ""))


def _cited(panel: str, row: dict, metric: str) -> Curve:
    """What a paper prints, without a cell or a step."""
    printed = along_epsilon({"metric": metric, **row["published"]})
    points = tuple(("", e, one.value, one.std, 0) for e, one in printed if one.value is not None)
    return Curve(panel, row["label"], dict.fromkeys(AXES, ""), points)


def draw(
    curves: list[Curve], spec: dict, axes: Mapping[str, Sequence[str]], chances: Sequence[float | None] = ()
) -> Figure:
    """The figure, with one legend for all panels.

    A label looks the same in each, coloured as its first line's entry is; `chances` are the panels' chance levels.
    """
    from dpstudy.tables.lettering import legend_columns

    measure, x_label = metric_of(spec.get("metric", "top1")).label, X_LABELS[spec.get("x", "epoch")]
    titles, shared = [panel.get("title", "") for panel in spec["panels"]], spec.get("share_y", False)
    figure, panels, columns = panels_of(len(titles), _COLUMNS, _PANEL_HEIGHT, 0.4, spec.get("title"), shared)
    styles = _styles(curves, axes)
    for i, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        for curve in (curve for curve in curves if curve.panel == title):
            _draw_curve(panel, curve, styles[curve.label])
        finish(panel, x_label, measure if i % columns == 0 or not shared else "", title)
    draw_chance(dict(zip(panels, chances, strict=False)))
    handles = handles_of(panels)
    columns = min(len(handles), legend_columns(handles, WIDTH))
    figure.legend(handles.values(), handles.keys(), frameon=False, loc="outside lower center", ncols=columns)
    return figure


def _styles(curves: list[Curve], axes: Mapping[str, Sequence[str]]) -> dict[str, dict]:
    """Label -> Matplotlib keywords; several lines of one colour differ in dashes, what is cited in markers."""
    likes = {curve.label: curve.like for curve in curves if curve.like}
    entries: dict[str, str] = {}
    for curve in (curve for curve in curves if not curve.cited and curve.label not in likes):
        entries.setdefault(curve.label, curve.cell["entry"])
    colour_of = dict(zip(entries, colours(list(entries.values()), axes), strict=True))
    colour_of |= {label: colour_of[like] for label, like in likes.items()}
    cited = dict.fromkeys(curve.label for curve in curves if curve.cited)
    return {
        label: {"color": colour, "linestyle": dash}
        for (label, colour), dash in zip(colour_of.items(), dashes(list(colour_of.values())), strict=True)
    } | {label: {"color": COLOURS[-1], "marker": MARKERS[number % len(MARKERS)]} for number, label in enumerate(cited)}


def _draw_curve(panel: Axes, curve: Curve, keywords: dict) -> None:
    """A line with its band; what is cited as points."""
    x, mean = [point[1] for point in curve.points], [point[2] for point in curve.points]
    if curve.cited:
        panel.plot(x, mean, label=curve.label, linestyle="none", markersize=4, zorder=4, **keywords)
        return
    panel.plot(x, mean, label=curve.label, **keywords)
    spread = [point[3] or 0.0 for point in curve.points]
    low, high = ([m + sign * s for m, s in zip(mean, spread, strict=True)] for sign in (-1, 1))
    panel.fill_between(x, low, high, color=keywords["color"], alpha=0.15, linewidth=0)


def _lines(spec: Mapping) -> list[dict]:
    return [line for panel in spec["panels"] for line in panel["lines"]]


def _check(where: str, spec: dict, study: Study) -> None:
    """Every line is a cell of a method with steps; what is cited stands over epsilon, in the one panel."""
    check_known(f"{where}.metric", spec["metric"], names(), "metric")
    if metric_of(spec["metric"]).on_training:
        raise StudyError(f"{where}.metric: {spec['metric']!r} has no curve; those of the test split have one")
    borrowed = {line.get("label", line["entry"]) for line in _lines(spec) if "like" in line}
    coloured = [label for line in _lines(spec) if (label := line.get("label", line["entry"])) not in borrowed]
    for number, panel in enumerate(spec["panels"]):
        for index, line in enumerate(panel["lines"]):
            at = f"{where}.panels[{number}].lines[{index}]"
            check_cell(at, line, study)
            if not method_schema(study.config["methods"][line["entry"]]["method"]).get("x-curve"):
                raise StudyError(f"{at}: the entry {line['entry']!r} has no steps, hence no curve")
            if "like" in line:
                check_known(f"{at}.like", line["like"], coloured, "line with a colour of its own")
    if "cited" in spec and (spec.get("x") != "epsilon" or len(spec["panels"]) > 1):
        raise StudyError(
            f"{where}.cited: printed numbers have an epsilon and no epoch: give 'x: epsilon' and one panel"
        )
    for number, row in enumerate(spec.get("cited", [])):
        at = f"{where}.cited[{number}]"
        check_label(at, row, [*_lines(spec), *spec["cited"][:number]], "line")
        try:
            points = along_epsilon({"metric": spec["metric"], **row["published"]})
        except StudyError as error:
            raise StudyError(f"{at}: {error}") from None
        if not points:
            raise StudyError(f"{at}: nothing is printed for it at a finite epsilon")


_LIKE = TEXT | {"description": "Label of another line, in whose colour this one is drawn, with other dashes."}
STYLE = FigureStyle(
    keys={
        "x": {"enum": list(X_LABELS), "description": "epoch where absent; epsilon: what was spent so far."},
        "panels": several(
            mapping(("lines",), title=TEXT, lines=several(mapping(tuple(AXES), dataset=TEXT, **LINE, like=_LIKE)))
        ),
        "share_y": {"type": "boolean", "description": "One vertical axis for all panels."},
        "cited": CITED,
    },
    needs=("panels",),
    check=_check,
    cells=lambda spec, study: like(study.cells, {}, map(named, _lines(spec))),
    documents=lambda spec, study: dict.fromkeys(("curves", "metrics"), [*dict.fromkeys(map(cell_path, _lines(spec)))]),
    draw=draw_curves,
    caption=lambda spec, axes, numbers: measured(
        spec, axes, numbers, "along training", "mean over seeds, bands are one standard deviation"
    ),
    measures=False,  # curves have metrics of their own, whatever is reported
)
