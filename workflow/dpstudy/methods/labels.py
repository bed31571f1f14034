"""Labels of records: checks against the declared classes, and one-hot encoding."""

import numpy as np

from dpstudy.core.errors import StudyError


def one_hot(labels: np.ndarray, classes: int, positives: int = 1) -> np.ndarray:
    """(n, m) float32 one-hot labels from class indices (n,), or from a 0/1 matrix (n, m).

    Raises:
        StudyError: as for `checked_labels`.
    """
    labels = checked_labels(labels, classes, positives)
    if labels.ndim == 2:
        return labels.astype(np.float32)
    encoded = np.zeros((len(labels), classes), dtype=np.float32)
    encoded[np.arange(len(labels)), labels] = 1
    return encoded


def checked_labels(labels: np.ndarray, classes: int, positives: int = 1) -> np.ndarray:
    """The labels as an array of class indices (n,) or a 0/1 matrix (n, m), once they are checked.

    Raises:
        StudyError: a label outside 0..m-1, an entry that is not 0 or 1, or a record with more than `positives`
            positive labels: the bound on its contribution would not hold.
    """
    labels = np.asarray(labels)
    if labels.ndim == 2:
        if labels.shape[1] != classes:
            raise StudyError(f"labels have {labels.shape[1]} columns where {classes} classes are declared")
        if not np.isin(labels, (0, 1)).all():
            raise StudyError("a multi-label entry is neither 0 nor 1")
        excess = np.flatnonzero(labels.sum(1) > positives)
        if excess.size:
            raise StudyError(
                f"row {excess[0]}: {int(labels[excess[0]].sum())} positive labels where at most {positives} are "
                "declared (`positives`): raise it, or write `beyond: truncate` for the data set"
            )
        return labels
    if labels.dtype.kind not in "iu":
        raise StudyError(f"labels are of type {labels.dtype}: class indices must be integers")
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if outside.size:
        raise StudyError(f"row {outside[0]}: label {labels[outside[0]]} lies outside 0..{classes - 1}")
    return labels
