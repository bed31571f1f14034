"""Metrics under many weightings of the same records at once, for the bootstrap: fast matrix products."""

import numpy as np

_ROUNDING = 1e-12


def auc(scores: np.ndarray, member: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted area under the ROC curve; equal scores count half.

    >>> auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]), np.ones((1, 4)))
    array([0.75])

    Args:
        scores: (n,).
        member: (n,) booleans.
        weights: (R, n), at least 0.

    Returns:
        (R,) fractions; NaN where members, or the others, have no weight.
    """
    inside, outside = _by_rank(scores, member, weights)
    below = np.cumsum(outside, axis=1) - outside / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return (inside * below).sum(1) / (inside.sum(1) * outside.sum(1))


def average_precision(scores: np.ndarray, member: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted average precision: the sum over thresholds of the gain in recall times the precision.

    Args, Returns: as of `auc`, NaN included: where all have the label there is nothing to tell.
    """
    inside, outside = _by_rank(-scores, member, weights)
    hits, all_of_it = np.cumsum(inside, axis=1), np.cumsum(inside + outside, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(all_of_it > 0, hits / all_of_it, 0.0)
        return np.where(outside.sum(1) > 0, (inside * precision).sum(1) / inside.sum(1), np.nan)


def sensitivity(scores: np.ndarray, member: np.ndarray, weights: np.ndarray, specificity: float) -> np.ndarray:
    """The highest weighted sensitivity at a threshold where the specificity is at least `specificity`.

    >>> sensitivity(np.array([0.9, 0.8, 0.7, 0.1]), np.array([True, False, True, False]), np.ones((1, 4)), 0.5)
    array([1.])

    Args, Returns: as of `auc`.
    """
    inside, outside = _by_rank(-scores, member, weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        recall = np.cumsum(inside, axis=1) / inside.sum(1, keepdims=True)
        wrong = np.cumsum(outside, axis=1) / outside.sum(1, keepdims=True)
    best = np.where(wrong <= 1 - specificity + _ROUNDING, recall, 0.0).max(1)
    return np.where(np.isnan(recall[:, -1] + wrong[:, -1]), np.nan, best)


def mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(R,) weighted means of (n,) values; NaN where all weights are 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return weights @ values.astype(np.float64) / weights.sum(1)


def resamples(n: int, count: int, subjects: np.ndarray | None = None) -> np.ndarray:
    """(count, n) how often each record occurs in each bootstrap sample; a subject's records stay together.

    Args:
        subjects: (n,) whose each record is: people are drawn, not pictures. None: records are.
    """
    drawn = np.random.default_rng([0, count, n])
    number = np.arange(n) if subjects is None else np.unique(subjects.astype(str), return_inverse=True)[1]
    units = int(number.max()) + 1
    return drawn.multinomial(units, np.full(units, 1 / units), size=count)[:, number].astype(np.float64)


def _by_rank(scores: np.ndarray, member: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(R, values) the weights of members and of others at each value of the scores, ascending."""
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    inside, outside = (np.add.reduceat(weights[:, order] * flag[order], starts, axis=1) for flag in (member, ~member))
    return inside, outside
