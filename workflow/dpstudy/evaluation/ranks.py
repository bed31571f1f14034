"""The rank of the true class among a model's scores."""

from collections.abc import Callable

import numpy as np


def ranks(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) the number of classes ranked before the true one, from 0; ties go to the class that comes first.

    Args:
        scores: (n, m).
        labels: (n,) class indices.
    """
    true = np.take_along_axis(scores, labels[:, None].astype(np.int64), axis=1)
    earlier = np.arange(scores.shape[1]) < labels[:, None]
    return (scores > true).sum(axis=1) + ((scores == true) & earlier).sum(axis=1)


def among(k: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A function (scores, labels) -> (n,) whether the true class is among the k highest scores."""
    return lambda scores, labels: ranks(scores, labels) < k
