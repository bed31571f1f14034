"""Figures of a study as the report shows them: a drawing that answers to the pointer, or the figure's picture."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path

from dpstudy.errors import StudyError
from dpstudy.evaluation.metrics import METRICS
from dpstudy.report.charts import describe_chart
from dpstudy.tables.results import Results

_BY_EPSILON = "epsilons"
_DRAWN = {  # style of a figure -> what it shows, and how
    "curve": ("along training", "mean over seeds, bands are one standard deviation"),
    "size": ("against the number of training records", "mean over seeds, bars are one standard deviation"),
    "search": (
        "on the validation split by one hyper-parameter",
        "over all trials of each search with that value; the split is of private records, which no ledger accounts for",
    ),
}


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
    axes, title = results.axes, spec.get("title") or name
    if spec.get("style", _BY_EPSILON) == _BY_EPSILON:
        chart = describe_chart(name, spec, results)
        caption = f"{title}: {chart['metric']} against the target ε; mean over seeds, bars are {chart['bars']}."
        alt = f"{title}: {_by_epsilon(spec, axes)}; the numbers stand below."
        return {"name": name, "caption": caption, "alt": alt, "chart": chart, "png": None}
    try:
        content = Path(paths[name]).read_bytes()
    except (KeyError, FileNotFoundError):
        raise StudyError(f"figure {name}: its PNG is missing; run snakemake again to remake it") from None
    caption, alt = _captions(spec, f"the numbers stand in results/figures/{name}.csv")
    png = base64.b64encode(content).decode("ascii")
    return {"name": name, "caption": f"{title}: {caption}", "alt": f"{title}: {alt}", "chart": None, "png": png}


def listed(names: list[str]) -> str:
    """Names as a text: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _by_epsilon(spec: dict, axes: Mapping) -> str:
    kinds, entries = listed(spec.get("features", axes["features"])), listed(spec.get("entries", axes["entries"]))
    return f"{METRICS[spec.get('metric', 'top1')]} against the privacy budget epsilon for {entries} on {kinds}"


def _captions(spec: dict, numbers: str) -> tuple[str, str]:
    """What a figure shows, below it and for those who do not see it, by its style."""
    style, metric = spec["style"], METRICS[spec.get("metric", "top1")]
    if style in _DRAWN:
        drawn, detail = _DRAWN[style]
        return f"{metric} {drawn}; {detail}.", f"{metric} {drawn}; {numbers}."
    if style == "noise":
        caption = "noise on a sum of gradients, in units of the bound on a record's gradient."
        return caption, f"noise multipliers; {numbers}."
    if style == "disparity":
        by = spec["column"].replace("_", " ")
        detail = "mean over seeds, bars are 95 % intervals over seeds and test records where there are any"
        return f"{metric} on the test split by {by}; {detail}.", f"{metric} by {by}; {numbers}."
    shown = f"distances from training records of {spec['dataset']} to the nearest of their class"
    caption = (
        f"{shown}, on the features {spec['features']}. They are computed from private records without noise: no "
        "guarantee covers this figure, and it is not for publication."
    )
    return caption, f"{shown}, a histogram a class; {numbers}."
