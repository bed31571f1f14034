"""How well an attacker tells runs with a record from runs without it, and how well any attacker could."""

import math

import numpy as np


def area_under_curve(present: np.ndarray, absent: np.ndarray) -> float:
    """The chance that a run with the record has the larger statistic; ties count a half (the ROC curve's area)."""
    from sklearn.metrics import roc_auc_score

    truth = np.repeat([1, 0], [len(present), len(absent)])
    return float(roc_auc_score(truth, np.concatenate([present, absent])))


def advantage(held_out: tuple[np.ndarray, np.ndarray], runs: tuple[np.ndarray, np.ndarray]) -> float:
    """1 - beta - alpha of the test "the statistic exceeds a threshold", in [-1, 1].

    The threshold is the one of the largest advantage on held-out runs: were it chosen on the runs that are counted, the
    result would be too large.

    Args:
        held_out, runs: the statistic in runs with the record and in runs without it.
    """
    values = np.unique(np.concatenate(held_out))
    thresholds = np.concatenate([values[:-1] + np.diff(values) / 2, values[-1:]])
    gains = _above(held_out[0], thresholds) - _above(held_out[1], thresholds)
    best = np.flatnonzero(gains == gains.max())
    threshold = thresholds[best[len(best) // 2]]
    return float(_above(runs[0], threshold) - _above(runs[1], threshold))


def largest_advantage(epsilon: float, delta: float) -> float:
    """(e^epsilon - 1 + 2 delta)/(e^epsilon + 1), above which no (epsilon, delta)-private run lets any attacker come
    (Humphries et al. 2020; de2022 A.2).

    >>> round(largest_advantage(1.0, 1e-5), 4)
    0.4621
    """
    return math.tanh(epsilon / 2) + 2 * delta / (math.exp(epsilon) + 1)


def _above(statistic: np.ndarray, thresholds):
    """The share of runs above each threshold."""
    return 1 - np.searchsorted(np.sort(statistic), thresholds, side="right") / len(statistic)
