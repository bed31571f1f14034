"""Figures of a study as the report shows them: a drawing that answers to the pointer, or the figure's picture."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.report.charts import describe_chart
from dpstudy.tables.remarks import figure_remarks
from dpstudy.tables.results import Results
from dpstudy.tables.styles import figure_style


def describe_figure(name: str, spec: dict, results: Results, paths: Mapping[str, str | os.PathLike]) -> dict:
    """A figure of the config.

    Args:
        name: its key under `figures`.
        spec: its value there.
        results: of the study.
        paths: figure name -> path of its PNG.

    Returns:
        {"name", "caption", "alt", "chart", "png"}: the picture as base64, or of accuracy against epsilon the chart;
        the other is None.

    Raises:
        StudyError: its PNG is missing.
    """
    axes, title, style = results.axes, spec.get("title") or name, figure_style(spec)
    if style.series is not None:
        chart = describe_chart(name, spec, results)
        caption = f"{title}: {chart['metric']} against the target ε; mean over seeds, bars are {chart['bars']}."
        caption += figure_remarks(spec, axes)
        alt = f"{title}: {style.caption(spec, axes, 'the numbers stand below')[1]}"
        return {"name": name, "caption": caption, "alt": alt, "chart": chart, "png": None}
    try:
        content = Path(paths[name]).read_bytes()
    except (KeyError, FileNotFoundError):
        raise StudyError(f"figure {name}: its PNG is missing; run snakemake again to remake it") from None
    caption, alt = style.caption(spec, axes, f"the numbers stand in results/figures/{name}.csv")
    png = base64.b64encode(content).decode("ascii")
    return {"name": name, "caption": f"{title}: {caption}", "alt": f"{title}: {alt}", "chart": None, "png": png}
