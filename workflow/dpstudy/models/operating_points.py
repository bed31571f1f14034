"""Decision thresholds read from a model's released noisy histograms of scores (methods/operating_points.py)."""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from dpstudy.core.errors import StudyError

POINTS, SPREAD = "operating_points", "operating_points_noise"  # in a model's metadata
EDGES = np.linspace(-5.75, 5.75, 24)  # of bins of log odds; the outer ones go on
_Model = TypeVar("_Model")
TOLD_APART = 3.0  # standard deviations of their noise that counts have to be large


@dataclass(frozen=True)
class Threshold:
    """The probability above which a class is predicted.

    Attributes:
        probability: the threshold.
        found: the share of those with the class that are above it, and by how much noise has it off; None: noise hides
            how many bear the class.
    """

    probability: float
    found: tuple[float, float] | None


def with_counts(model: _Model, counts: np.ndarray, noise: float) -> _Model:
    """The (calibrated) model with (2, m, bins) counts in its metadata, and their noise standard deviation."""
    metadata = {POINTS: json.dumps(np.round(counts, 1).tolist()), SPREAD: repr(float(noise))}
    return dataclasses.replace(model, metadata=model.metadata | metadata)  # type: ignore[attr-defined, type-var]


def counts_of(metadata: Mapping[str, str], classes: int) -> tuple[np.ndarray, float] | None:
    """The counts and their noise standard deviation in a model's metadata; None where it has none.

    Raises:
        StudyError: they are not for so many classes.
    """
    if POINTS not in metadata:
        return None
    try:
        counts, noise = np.array(json.loads(metadata[POINTS]), np.float64), float(metadata[SPREAD])
        fits = counts.shape == (2, classes, len(EDGES) + 1) and np.isfinite(counts).all() and 0 <= noise < math.inf
    except (ValueError, KeyError, TypeError, RecursionError):
        fits = False
    if not fits:
        raise StudyError(f"its operating points are not counts of {classes} classes")
    return counts, noise


def thresholds(counts: np.ndarray, noise: float, specificity: float) -> list[Threshold | None]:
    """The lowest threshold of each class with at least the given specificity; None where noise hides it.

    Raises:
        StudyError: the specificity is not between 0 and 1.
    """
    if not 0 < specificity < 1:
        raise StudyError(f"a specificity is a number between 0 and 1, and not {specificity:g}")
    return [_threshold(without, bearing, noise, specificity) for without, bearing in zip(*counts, strict=True)]


def _threshold(without: np.ndarray, bearing: np.ndarray, noise: float, specificity: float) -> Threshold | None:
    total, bins = float(without.sum()), len(without)
    if total <= TOLD_APART * noise * math.sqrt(bins):
        return None
    above = np.append(np.cumsum(without[::-1])[::-1], 0.0)  # of those without it, from each bin on
    allowed, first = (1 - specificity) * total, bins
    while first > 0 and above[first - 1] <= allowed:
        first -= 1
    if first == bins:  # too many are beyond the last edge
        return None
    part = 0.0  # share of the bin below that is predicted to have the class too
    if first > 1:  # the outermost bin is unbounded
        part = _part(float(above[first]), float(above[first - 1]), allowed)
    odds = float(EDGES[max(0, first - 1)]) - part * float(EDGES[1] - EDGES[0])
    return Threshold(1 / (1 + math.exp(-odds)), _found(bearing, first, part, noise))


def _part(fewer: float, more: float, allowed: float) -> float:
    """How far down from a bin's upper edge `allowed` are above: their logarithm falls evenly, as in a tail."""
    if fewer <= 0:
        return (allowed - fewer) / (more - fewer)
    return math.log(allowed / fewer) / math.log(more / fewer)


def _found(bearing: np.ndarray, first: int, part: float, noise: float) -> tuple[float, float] | None:
    total = float(bearing.sum())
    if total <= TOLD_APART * noise * math.sqrt(len(bearing)):
        return None
    above = float(bearing[first:].sum()) + part * float(bearing[first - 1])
    return min(1.0, max(0.0, above / total)), noise * math.sqrt(len(bearing) - first + 1) / total
