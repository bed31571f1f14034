"""A score on held-out private records with sensitivity 1: each record only adds to it, by at most 1.

That bounds what a record can change about a choice between models. An area under a curve has no such bound.
"""

import numpy as np

from dpstudy.evaluation.ranks import ranks

_GRID = 2.0**-20  # shares of a record are multiples of it, so that their sums are exact


def how_right(scores: np.ndarray, labels: np.ndarray) -> float:
    """The number of correctly classified records; with several labels, the sum of each record's rank accuracy.

    That is its share of (label that it has, label that it has not) pairs whose scores are in this order.

    Args:
        scores: (n, m).
        labels: (n,) class indices, or (n, m) of 0 and 1.

    Returns:
        A number to which each record adds between 0 and 1; one whose scores are not finite adds 0.
    """
    scores, labels = np.asarray(scores), np.asarray(labels)
    finite = np.isfinite(scores).all(axis=1)
    if labels.ndim == 1:
        return float(np.count_nonzero(finite & (ranks(scores, labels) == 0)))
    has = labels.astype(bool)
    above = (scores[:, :, None] > scores[:, None, :]) & has[:, :, None] & ~has[:, None, :]
    pairs = has.sum(1) * (~has).sum(1)
    shares = above.sum((1, 2)) / np.maximum(pairs, 1)
    return float(np.sum(np.floor(shares[finite] / _GRID) * _GRID))
