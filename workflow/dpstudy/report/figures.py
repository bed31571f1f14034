"""Figures of a study as the report shows them: a drawing that answers to the pointer, or the figure's picture."""

import base64
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.report.charts import describe_chart
from dpstudy.tables.captions import figure_caption
from dpstudy.tables.results import Results
from dpstudy.tables.styles import figure_style


def describe_figure(
    name: str, spec: dict, results: Results, paths: Mapping[str, str | os.PathLike], cells: Iterable[str] = ()
) -> dict:
    """A figure of the config.

    Args:
        name: its key under `figures`.
        spec: its value there.
        results: of the study.
        paths: figure name -> path of its PNG.
        cells: those that it draws something of.

    Returns:
        {"name", "caption", "alt", "chart", "png"}: the picture as base64, or of accuracy against epsilon the chart;
        the other is None.

    Raises:
        StudyError: its PNG is missing.
    """
    drawn, title = figure_style(spec).series is not None, spec.get("title") or name
    numbers = "the numbers stand below" if drawn else f"the numbers stand in results/figures/{name}.csv"
    caption, alt = (f"{title}: {text}" for text in figure_caption(spec, cells, results, numbers))
    told = {"name": name, "caption": caption, "alt": alt}
    if drawn:
        return told | {"chart": describe_chart(name, spec, results), "png": None}
    try:
        content = Path(paths[name]).read_bytes()
    except (KeyError, FileNotFoundError):
        raise StudyError(f"figure {name}: its PNG is missing; run snakemake again to remake it") from None
    return told | {"chart": None, "png": base64.b64encode(content).decode("ascii")}
