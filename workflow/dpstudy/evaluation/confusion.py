"""Confusion matrices: counts of test records by true class and prediction, overall and in subgroups."""

from collections.abc import Mapping, Sequence

import numpy as np

WHOLE = ""
SEVERAL = ("without it, left alone", "without it, told to have it", "with it, missed", "with it, found")


def confusion(
    scores: np.ndarray,
    labels: np.ndarray,
    classes: Sequence[str],
    masks: Mapping[str, np.ndarray],
    probabilities: bool,
) -> dict | None:
    """A seed's confusion matrices in metrics.json: `classes`, the predictions `told`, and `counts`.

    Counts are of the whole split (the name "") and of each group, rows by class and columns by prediction. With one
    label per record the prediction is the class with the highest score; with several, a label is predicted from a
    probability of 1/2 on.

    Args:
        scores: (n, m).
        labels: (n,) class indices, or (n, m) zeros and ones.
        classes: m names.
        masks: name of a group -> (n,) whether a record belongs.
        probabilities: whether scores are log odds; if not, nobody knows from which score on one of several labels is
            there, and nothing is counted.

    >>> confusion(np.array([[2, 1], [0, 1], [3, 0]]), np.array([0, 1, 1]), "ab", {}, False)["counts"]
    {'': [[1, 0], [1, 1]]}
    >>> confusion(np.array([[2], [-1], [3]]), np.array([[1], [1], [0]]), "a", {}, True)["counts"]
    {'': [[0, 1, 1, 1]]}
    """
    several = labels.ndim == 2
    if several and not probabilities:
        return None
    count = _several if several else _one
    parts = {WHOLE: np.ones(len(labels), bool), **masks}
    counts = {name: count(scores[mask], labels[mask]).tolist() for name, mask in parts.items()}
    return {"classes": [*classes], "told": [*(SEVERAL if several else classes)], "counts": counts}


def _one(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    classes = scores.shape[1]
    return np.bincount(classes * labels + scores.argmax(1), minlength=classes**2).reshape(classes, classes)


def _several(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    predicted, borne = scores >= 0, labels != 0
    return np.stack([(predicted == t) & (borne == h) for h in (False, True) for t in (False, True)]).sum(1).T
