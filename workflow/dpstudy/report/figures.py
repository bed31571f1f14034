"""Figures in the report: the picture and, for accuracy against epsilon, its numbers."""

import base64
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.metrics import metric_of
from dpstudy.evaluation.summary import cell_name, values_by_cell
from dpstudy.report.tables import privacy_of
from dpstudy.tables.captions import figure_caption
from dpstudy.tables.layout import cell_at
from dpstudy.tables.numbers import decimals, interval_text
from dpstudy.tables.results import Results
from dpstudy.tables.series import intervals_of
from dpstudy.tables.styles import figure_style


def describe_figure(
    name: str, spec: dict, results: Results, paths: Mapping[str, str | os.PathLike], cells: Iterable[str] = ()
) -> dict:
    """The content of a figure for the page.

    Args:
        name: its key under `figures`.
        spec: its value there.
        results: of the study.
        paths: figure name -> path of its SVG.
        cells: those that it draws something of.

    Returns:
        {"name", "caption", "alt", "svg": the picture as base64, "metric", "numbers": those of accuracy against epsilon,
        as of `numbers_of`; of other figures they are empty, and stand in its CSV}.

    Raises:
        StudyError: its SVG is missing.
    """
    drawn, title = figure_style(spec).series is not None, spec.get("title") or name
    where = "the numbers stand below" if drawn else f"the numbers stand in results/figures/{name}.csv"
    caption, alt = (f"{title}: {text}" for text in figure_caption(spec, cells, results, where))
    try:
        content = Path(paths[name]).read_bytes()
    except (KeyError, FileNotFoundError):
        raise StudyError(f"figure {name}: its SVG is missing; run snakemake again to remake it") from None
    return {
        "name": name,
        "caption": caption,
        "alt": alt,
        "svg": base64.b64encode(content).decode("ascii"),
        "metric": metric_of(spec.get("metric", "top1")).label,
        "numbers": numbers_of(name, spec, results) if drawn else [],
    }


def numbers_of(name: str, spec: dict, results: Results) -> list[tuple[str, ...]]:
    """(line, data set, epsilon, value, 95 % interval, privacy) of each point of a figure of accuracy against epsilon.

    The points of a line go from the least epsilon to the largest; what is not known is empty.
    """
    metric, collect = spec.get("metric", "top1"), figure_style(spec).series
    series = collect(name, spec, results.axes, results.summary) if collect else []
    values = values_by_cell(results.summary, metric)
    intervals = {} if "gain_over" in spec else intervals_of(series, results, metric)
    rows: list[tuple[str, ...]] = []
    for line in series:
        for epsilon, mean, std, seeds in sorted(line.points, key=lambda point: float(point[0])):
            key = (line.dataset, line.features, line.entry, epsilon)
            digits = decimals(std, metric)
            shown = f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if std and seeds != 1 else "")
            within = interval_text(intervals.get(cell_name(*key)), digits)
            guarantee = "" if line.published else privacy_of(cell_at(key, values, results, None, metric, "mean"))
            rows.append((line.label, line.dataset, "∞" if epsilon == "inf" else epsilon, shown, within, guarantee))
    return rows
