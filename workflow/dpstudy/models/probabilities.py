"""Calibrated scores, which are log odds, and their probabilities (methods/calibrated.py)."""

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from dpstudy.core.errors import StudyError

SLOPE, OFFSETS = "calibration_slope", "calibration_offsets"  # in a model's metadata, and its file's
SHARES, NOISE = "calibration_shares", "calibration_noise"
TOLD_APART = 3.0  # standard deviations of their noise that shares have to be large
_Model = TypeVar("_Model")
_ROUNDING = 1e-6


def calibrated(model: _Model, slope: float, offsets: np.ndarray, shares: np.ndarray, noise: float) -> _Model:
    """The model with calibrated scores: their softmax (for several labels, sigmoids) gives probabilities.

    Args:
        slope: above 0.
        offsets: (m,).
        shares: (m,) of the training records that bear each class, in (0, 1), as they were released.
        noise: the standard deviation of what they are off by.

    Raises:
        StudyError: a model of another package that keeps no metadata.
    """
    if not dataclasses.is_dataclass(model) or not hasattr(model, "metadata"):
        raise StudyError(f"calibration: a model of type {type(model).__name__} keeps no metadata; leave it out")
    listed = {OFFSETS: offsets, SHARES: shares}
    metadata = {SLOPE: repr(float(slope)), NOISE: repr(float(noise))} | {
        key: json.dumps([float(one) for one in each]) for key, each in listed.items()
    }
    return dataclasses.replace(model, metadata=model.metadata | metadata)  # type: ignore[type-var]


def calibration_of(model: object) -> dict | None:
    """The slope, offsets, class shares and their noise of a model, as in run.json; None where not calibrated."""
    metadata = getattr(model, "metadata", {})
    if SLOPE not in metadata:
        return None
    listed = {"offsets": json.loads(metadata[OFFSETS]), "shares": json.loads(metadata[SHARES])}
    return {"slope": float(metadata[SLOPE]), "noise": float(metadata[NOISE])} | listed


def as_calibrated(scores: np.ndarray, metadata: Mapping[str, str]) -> np.ndarray:
    """(n, m) float32 scores calibrated as a model's metadata state; unchanged without calibration."""
    if SLOPE not in metadata:
        return scores
    offsets = np.array(json.loads(metadata[OFFSETS]), np.float64)
    return (scores.astype(np.float64) * float(metadata[SLOPE]) + offsets).astype(np.float32)


def check_calibration(path: str | os.PathLike, metadata: Mapping[str, str], classes: int) -> None:
    """Refuse a file whose calibration does not fit the number of classes.

    Raises:
        StudyError: one of its parts is missing or no such numbers, or there are more or fewer than classes.
    """
    if not metadata.keys() & {SLOPE, OFFSETS, SHARES, NOISE}:
        return
    try:
        slope, noise = float(metadata[SLOPE]), float(metadata[NOISE])
        offsets, shares = (np.array(json.loads(metadata[key]), np.float64) for key in (OFFSETS, SHARES))
        fits = 0 < slope < math.inf and 0 <= noise < math.inf and offsets.shape == shares.shape == (classes,)
        fits = fits and bool(np.isfinite(offsets).all() and (shares > 0).all() and (shares < 1).all())
    except (ValueError, KeyError, TypeError, RecursionError):
        fits = False
    if not fits:
        raise StudyError(
            f"{path}: its calibration is no slope above 0 with an offset and a share for each of {classes} classes"
        )


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


def where_shares_are(
    scores: np.ndarray, shares: np.ndarray, others: Mapping[int, float], several: bool, noise: float = 0.0
) -> np.ndarray:
    """Calibrated scores adjusted by Bayes' rule to other class prevalences than in training (prior shift).

    Args:
        shares: (m,) in training, off by `noise`.
        others: place of a class -> its share; those of one label a record that are not named keep their proportions.

    Raises:
        StudyError: a share is not between 0 and 1, they leave nothing for the classes that are not named, or noise
            hides how common a class was in training.

    >>> there = where_shares_are(np.zeros((1, 2)), np.array([0.5, 0.5]), {1: 0.1}, several=False)
    >>> probabilities(there, several=False).round(3).tolist()
    [[0.9, 0.1]]
    """
    new, left = shares.astype(np.float64), 1.0 - sum(others.values())
    if any(not 0 < share < 1 for share in others.values()):
        raise StudyError("a share is a number between 0 and 1")
    rest = [place for place in range(len(new)) if place not in others]
    if not several and (left <= 0 if rest else abs(left) > _ROUNDING):
        raise StudyError("the shares of classes of which an image has one add up to 1")
    unnamed = [] if several or not rest else [float(shares[rest].sum()) / math.sqrt(len(rest))]
    if min([*(float(shares[place]) for place in others), *unnamed], default=1.0) < TOLD_APART * noise:
        raise StudyError(
            f"noise hides how common the classes were in training (shares are known to {noise:.2g}), so that nothing "
            "can be corrected"
        )
    if not several and rest:
        new[rest] *= left / new[rest].sum()
    for place, share in others.items():
        new[place] = share
    odds = np.log(new / (1 - new)) - np.log(shares / (1 - shares)) if several else np.log(new) - np.log(shares)
    return scores + odds
