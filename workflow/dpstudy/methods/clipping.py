"""Clipping of records to a bounded norm, and the encoding of their labels."""

import numpy as np

from dpstudy.errors import StudyError
from dpstudy.methods.bounds import LOOKED_AT, hold, row_lengths

LARGEST_NORM = 1e15  # beyond it float32 holds neither a norm's square nor the factor that clips it
SMALLEST_NORM = 1e-15  # below it the square is lost, and a record would be scaled to more than unit norm


def clip_rows(features: np.ndarray, norm: float, exact: bool = False) -> np.ndarray:
    """Scale each row of (n, d) `features` down to at most Euclidean `norm`.

    A row with a NaN, an infinity or a norm above LARGEST_NORM becomes zero.

    >>> clip_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0).round(3)
    array([[0.6, 0.8],
           [0.3, 0.4]], dtype=float32)

    An infinite `norm` does not clip. The result is float32 and its norms never exceed `norm` by more than rounding
    (the scale is rounded towards zero).

    Args:
        exact: rows are rounded towards zero to a grid (exact.py; `norm` is then finite), and come in float64: sums of
            them are exact, and so are sums of their products.

    Raises:
        RuntimeError: some that were measured again do (bounds.py).
    """
    if exact:
        from dpstudy.methods.records import RowMap  # which needs this module

        return RowMap(clip=norm, exact=True)(np.asarray(features), np.empty(np.shape(features)))[0]
    given, features = features, np.asarray(features, dtype=np.float32)
    squared = np.einsum("nd,nd->n", features, features, dtype=np.float64)
    broken = ~(squared <= LARGEST_NORM**2)
    if not broken.any() and (np.isinf(norm) or not (squared > norm**2).any()):
        return features
    scale = _factors(squared, norm)
    scale[broken] = 0
    with np.errstate(invalid="ignore"):  # infinity times zero, in rows that become zero next
        own = None if np.may_share_memory(given, features) else features  # a copy may be overwritten
        clipped = np.multiply(features, scale[:, None].astype(np.float32), out=own)
    clipped[broken] = 0
    hold("clipped rows", row_lengths(clipped[:LOOKED_AT]), norm)
    return clipped


def _factors(squared: np.ndarray, norm: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        scale = np.minimum(1.0, norm / np.sqrt(squared)) if np.isfinite(norm) else np.ones_like(squared)
    scale[scale < 1] *= 1 - 1e-6
    return scale


def one_hot(labels: np.ndarray, classes: int, positives: int = 1) -> np.ndarray:
    """(n, m) float32 of 0 and 1 from class indices (n,), or from a 0/1 matrix (n, m).

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
    """The labels, class indices (n,) or a 0/1 matrix (n, m), as an array.

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
