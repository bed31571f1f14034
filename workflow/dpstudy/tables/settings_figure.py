"""What suits a cell against what it was given: accuracy or a chosen setting by batch size, noise, copies and the like
(de2022, Figures 2 to 4, 6, 7, 10 and 11), as PDF, PNG and CSV.

A line is made of cells of one epsilon. What is asked of a cell stands in its metrics.json: a metric, as mean over seeds
with bars of one standard deviation, or a hyper-parameter as it was used, chosen by a search or not.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evaluation.metrics import METRICS
from dpstudy.evaluation.summary import cell_name
from dpstudy.tables.figures import RC, save
from dpstudy.tables.lettering import legend_columns
from dpstudy.tables.palette import COLOURS, MARKERS

CSV_HEADER = (
    "panel",
    "line",
    "dataset",
    "features",
    "entry",
    "epsilon",
    "x",
    "x_value",
    "y",
    "y_value",
    "std",
    "seeds",
)
COPIES, EPOCHS = "copies", "epochs"  # not hyper-parameters of their own
_CALLED = {  # what an axis calls a hyper-parameter
    "batch_size": "batch size B",
    "noise_multiplier": "noise multiplier σ",
    "steps": "steps T",
    "learning_rate": "learning rate",
    "clipping_norm": "clipping norm C",
    COPIES: "augmentation multiplicity K",
    EPOCHS: "epochs",
}
_WIDTH, _PANEL_HEIGHT, _COLUMNS, _TICKS = 6.3, 2.3, 2, 8


@dataclass(frozen=True)
class Point:
    """One cell in one panel; `std` and `seeds` are None where y is a setting."""

    features: str
    entry: str
    x: float
    y: float
    std: float | None
    seeds: int | None


def build_settings_figure(
    name: str,
    spec: dict,
    metrics: Mapping[str, str | os.PathLike],
    pdf_path: str | os.PathLike,
    png_path: str | os.PathLike,
    csv_path: str | os.PathLike,
) -> None:
    """Draw one figure of style `settings`.

    Args:
        name: its key under `figures`.
        spec: its value there: panels ({x, y, title}), series ({label, dataset, epsilon} with features and entries, or
            with cells ({features, entry, x}) and panels' x the words under the axis), title.
        metrics: cell name -> path of its metrics.json.
        pdf_path, png_path, csv_path: what is written; the same bytes for the same content.

    Raises:
        StudyError: a cell has no such metric or setting, or its setting is no number.
    """
    where = f"figure {name}"
    panels = [[_points(where, panel, line, metrics) for line in spec["series"]] for panel in spec["panels"]]
    write_csv(
        csv_path,
        CSV_HEADER,
        (
            (_title(panel, number), line["label"], line["dataset"], point.features, point.entry, line["epsilon"])
            + (panel["x"], point.x, panel["y"], point.y, point.std, point.seeds)
            for number, (panel, lines) in enumerate(zip(spec["panels"], panels, strict=True))
            for line, points in zip(spec["series"], lines, strict=True)
            for point in points
        ),
    )
    with matplotlib.style.context(["default", RC]):
        save(draw(spec, panels), pdf_path, png_path)


def _title(panel: dict, number: int) -> str:
    return panel.get("title", f"({chr(ord('a') + number)})")


def _points(where: str, panel: dict, line: dict, metrics: Mapping[str, str | os.PathLike]) -> list[Point]:
    """The points of one line, by x."""
    found = []
    for part in line.get("cells") or [{"features": line["features"], "entry": entry} for entry in line["entries"]]:
        cell = cell_name(line["dataset"], part["features"], part["entry"], line["epsilon"])
        document, said = read_json(metrics[cell]), f"{where}: the cell {cell}"
        x = part["x"] if "x" in part else _value(said, document, panel["x"])[0]
        found.append(Point(part["features"], part["entry"], x, *_value(said, document, panel["y"])))
    return sorted(found, key=lambda point: point.x)


def _value(where: str, document: dict, name: str) -> tuple[float, float | None, int | None]:
    """(value, standard deviation, seeds) of a metric, or (value, None, None) of a setting."""
    if name in METRICS:
        values = [row[name] for row in document["seeds"] if name in row]
        if not values:
            raise StudyError(f"{where} has no {name!r}; name it in evaluation.metrics")
        mean, _, std = mean_median_std(values)
        return mean, std, len(values)
    settings = document["hyperparameters"]
    if name == COPIES:
        return float((settings.get("augmentation") or {}).get("multiplicity", 0)), None, None
    if name == EPOCHS and "steps" in settings:
        return settings["steps"] * settings.get("sampling_rate", 1.0), None, None
    value = settings.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        numbers = ", ".join(key for key, one in settings.items() if type(one) in (int, float))
        raise StudyError(f"{where} has no number {name!r}; it has {numbers}, {COPIES} and the metrics")
    return float(value), None, None


def draw(spec: dict, panels: Sequence[Sequence[list[Point]]]) -> Figure:
    """The figure: a panel each, a colour and a marker a line."""
    columns = min(len(panels), _COLUMNS)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(_WIDTH, 0.6 + _PANEL_HEIGHT * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    handles: list[Line2D] = []
    for number, (panel, lines, ax) in enumerate(zip(spec["panels"], panels, axes, strict=False)):
        handles = [  # the same in every panel
            _line(ax, points, COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)])
            for place, points in enumerate(lines)
        ]
        _axes(ax, panel, [point.x for points in lines for point in points])
        ax.set_title(_title(panel, number), loc="left")
    for unused in axes[len(panels) :]:
        unused.set_visible(False)
    labels = [line["label"] for line in spec["series"]]
    figure.legend(handles, labels, frameon=False, loc="outside lower center", ncols=legend_columns(labels, _WIDTH))
    if "title" in spec:
        figure.suptitle(spec["title"])
    return figure


def _line(ax: Axes, points: Sequence[Point], colour: str, marker: str) -> Line2D:
    look: dict[str, Any] = {"color": colour, "marker": marker, "markeredgecolor": "white", "markeredgewidth": 0.5}
    x, y = [_place(point.x, points) for point in points], [point.y for point in points]
    (drawn,) = ax.plot(x, y, **look)
    if any(point.std for point in points):
        ax.errorbar(x, y, [point.std or 0.0 for point in points], fmt="none", ecolor=colour, elinewidth=0.7, capsize=2)
    return drawn


def _place(x: float, points: Sequence[Point]) -> float:
    """Where x stands on a logarithmic axis: no copies stand half as far as the least."""
    return x if x > 0 else min((point.x for point in points if point.x > 0), default=1.0) / 2


def _axes(ax: Axes, panel: dict, values: Sequence[float]) -> None:
    ax.set_xscale("log")
    distinct = sorted(set(values))
    if len(distinct) <= _TICKS:
        least = min((value for value in distinct if value > 0), default=1.0)
        ticks = [value if value > 0 else least / 2 for value in distinct]
        ax.set_xticks(ticks, [f"{value:g}" if value > 0 else "none" for value in distinct])
        ax.xaxis.set_minor_locator(NullLocator())
    else:
        _decades(ax.xaxis)
    ax.set_xlabel(_CALLED.get(panel["x"], panel["x"].replace("_", " ")))
    if panel["y"] in METRICS:
        ax.set_ylabel(METRICS[panel["y"]])
    else:
        ax.set_yscale("log")
        _decades(ax.yaxis)
        ax.set_ylabel(_CALLED.get(panel["y"], panel["y"].replace("_", " ")))
    ax.grid(axis="y", color="0.9", linewidth=0.5)
    ax.set_axisbelow(True)


def _decades(axis) -> None:
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
