"""Membership inference: an attacker's success, and the most that any attacker can have under (epsilon, delta)-DP."""

import math

import numpy as np


def area_under_curve(present: np.ndarray, absent: np.ndarray) -> float:
    """The area under the ROC curve: the chance that a run with the record has the larger statistic (ties half)."""
    from sklearn.metrics import roc_auc_score

    truth = np.repeat([1, 0], [len(present), len(absent)])
    return float(roc_auc_score(truth, np.concatenate([present, absent])))


def advantage(held_out: tuple[np.ndarray, np.ndarray], runs: tuple[np.ndarray, np.ndarray]) -> float:
    """The attacker's advantage, 1 - beta - alpha, of the test "the statistic exceeds a threshold", in [-1, 1].

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
    """The largest advantage of any attacker under (epsilon, delta)-DP: (e^epsilon - 1 + 2 delta)/(e^epsilon + 1).

    Humphries et al. 2020; de2022 A.2.

    >>> round(largest_advantage(1.0, 1e-5), 4)
    0.4621
    """
    return math.tanh(epsilon / 2) + 2 * delta / (math.exp(epsilon) + 1)


def _above(statistic: np.ndarray, thresholds):
    """The share of runs above each threshold."""
    return 1 - np.searchsorted(np.sort(statistic), thresholds, side="right") / len(statistic)
