"""At which place of a model's scores the true class of each record stands."""

from collections.abc import Callable

import numpy as np


def ranks(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) how many classes stand before the true one, from 0; of equal scores the first class counts higher.

    Args:
        scores: (n, m).
        labels: (n,) class indices.
    """
    true = np.take_along_axis(scores, labels[:, None].astype(np.int64), axis=1)
    earlier = np.arange(scores.shape[1]) < labels[:, None]
    return (scores > true).sum(axis=1) + ((scores == true) & earlier).sum(axis=1)


def among(k: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """(scores, labels) -> (n,) whether the class of each record is among the k highest scores."""
    return lambda scores, labels: ranks(scores, labels) < k
