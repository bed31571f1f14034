"""A figure of a forecast: the expected metric by number of units, for each epsilon."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic
from dpstudy.evaluation.metrics import metric_of
from dpstudy.forecast.decide import Plan, Useful
from dpstudy.forecast.model import Forecast, Question, signal_of
from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.drawing import drawing
from dpstudy.tables.palette import COLOURS

SUFFIXES = (".png", ".pdf", ".svg")
_SIZES = np.unique(np.logspace(2, 5, 40).round().astype(int))


def draw(path: str, method: str, forecast: Forecast, question: Question, useful: Useful, plan: Plan) -> None:
    """Write the figure of one method's forecast.

    Args:
        path: a PNG, PDF or SVG file.
        question: of which units and signal are drawn anew.

    Raises:
        StudyError: the file would be of another kind.
    """
    if (kind := Path(path).suffix.lower()) not in SUFFIXES:
        raise StudyError(f"--figure {path}: must end in {', '.join(SUFFIXES)}")
    known = useful.without_privacy is not None
    with drawing():
        figure = Figure(figsize=(4.2, 3.0), layout="constrained")
        axes = figure.subplots()
        for epsilon, colour in zip(sorted(plan.epsilons, reverse=True), COLOURS, strict=False):
            low, middle, high = np.array([_at(int(n), epsilon, forecast, question, useful, plan) for n in _SIZES]).T
            axes.fill_between(_SIZES, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(_SIZES, middle, color=colour, label=f"ε = {upper_bound(epsilon)}")
        axes.axvline(plan.units, color="0.4", linewidth=0.8, linestyle=":")
        axes.annotate(
            "yours", (plan.units, 0.02), xycoords=("data", "axes fraction"), rotation=90, fontsize=7, ha="right"
        )
        if known and not np.isnan(useful.at_least):
            axes.axhline(useful.at_least, color="0.4", linewidth=0.8)
            axes.annotate(
                "of use", (0.01, useful.at_least), xycoords=("axes fraction", "data"), fontsize=7, va="bottom"
            )
        axes.set_xscale("log")
        axes.set_xlabel("persons that are learned from" if plan.persons else "images that are learned from")
        axes.set_ylabel(metric_of(useful.metric).label if known else "share of the gain over guessing")
        axes.set_title(f"{method}: what to expect, with 90 % intervals")
        axes.legend(frameon=False)
        with atomic(path, private=True) as temporary:
            figure.savefig(temporary, format=kind[1:], dpi=200)


def _at(
    units: int, epsilon: float, forecast: Forecast, question: Question, useful: Useful, plan: Plan
) -> tuple[float, float, float]:
    """(low, middle, high) of the metric where the gain is known, else of the share."""
    signal = plan.scale * signal_of(units, epsilon, plan.delta)
    share = forecast.share(replace(question, n=units, signal=signal))
    return useful.values(*share) or share
