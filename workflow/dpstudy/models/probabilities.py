"""Scores as log odds: what a calibration (methods/calibrated.py) adds to a model, and probabilities of them."""

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from dpstudy.core.errors import StudyError

SLOPE, OFFSETS = "calibration_slope", "calibration_offsets"  # in a model's metadata, and its file's
_Model = TypeVar("_Model")


def calibrated(model: _Model, slope: float, offsets: np.ndarray) -> _Model:
    """The model with scores of which the softmax (of several labels, the sigmoid of each) are probabilities.

    Args:
        slope: above 0.
        offsets: (m,).

    Raises:
        StudyError: a model of another package that keeps no metadata.
    """
    if not dataclasses.is_dataclass(model) or not hasattr(model, "metadata"):
        raise StudyError(f"calibration: a model of type {type(model).__name__} keeps no metadata; leave it out")
    told = {SLOPE: repr(float(slope)), OFFSETS: json.dumps([float(one) for one in offsets])}
    return dataclasses.replace(model, metadata=model.metadata | told)  # type: ignore[type-var]


def calibration_of(model: object) -> dict | None:
    """The slope and the offsets of a model's scores, as run.json has them; None where there are none."""
    metadata = getattr(model, "metadata", {})
    if SLOPE not in metadata:
        return None
    slope, offsets = slope_and_offsets(metadata)
    return {"slope": slope, "offsets": offsets.tolist()}


def as_calibrated(scores: np.ndarray, metadata: Mapping[str, str]) -> np.ndarray:
    """(n, m) float32 scores as a model's metadata say; as they are where these hold no calibration."""
    if SLOPE not in metadata:
        return scores
    slope, offsets = slope_and_offsets(metadata)
    return (scores.astype(np.float64) * slope + offsets).astype(np.float32)


def slope_and_offsets(metadata: Mapping[str, str]) -> tuple[float, np.ndarray]:
    """What `calibrated` added to a model."""
    return float(metadata[SLOPE]), np.array(json.loads(metadata[OFFSETS]), np.float64)


def check_calibration(path: str | os.PathLike, metadata: Mapping[str, str], classes: int) -> None:
    """Refuse a file whose calibration is none for so many classes.

    Raises:
        StudyError: one of its two parts is missing or no finite numbers, or there are more or fewer offsets.
    """
    if SLOPE not in metadata and OFFSETS not in metadata:
        return
    try:
        slope, offsets = slope_and_offsets(metadata)
        fits = 0 < slope < math.inf and offsets.shape == (classes,) and bool(np.isfinite(offsets).all())
    except (ValueError, KeyError, TypeError, RecursionError):
        fits = False
    if not fits:
        raise StudyError(f"{path}: its calibration is no slope above 0 with an offset for each of {classes} classes")


def probabilities(scores: np.ndarray, several: bool) -> np.ndarray:
    """(n, m) float64 probabilities of calibrated scores.

    Args:
        several: each class is a question of its own.

    >>> probabilities(np.array([[0.0, np.log(3)]]), several=False).round(2).tolist()
    [[0.25, 0.75]]
    """
    wide = scores.astype(np.float64)
    if several:
        return np.exp(-np.logaddexp(0, -wide))
    odds = np.exp(wide - wide.max(1, keepdims=True))
    return odds / odds.sum(1, keepdims=True)
