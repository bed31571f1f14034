"""Clipping of records to a bounded norm."""

import numpy as np

from dpstudy.methods.bounds import LARGEST_NORM, LOOKED_AT, hold, row_lengths
from dpstudy.methods.row_map import RowMap


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
        return RowMap(clip=norm, exact=True)(np.asarray(features), np.empty(np.shape(features)))[0]
    given, features = features, np.asarray(features, dtype=np.float32)
    squared = np.einsum("nd,nd->n", features, features, dtype=np.float64)
    broken = ~(squared <= LARGEST_NORM**2)
    if not broken.any() and (np.isinf(norm) or not (squared > norm**2).any()):
        return features
    scale = _factors(squared, norm)
    scale[broken] = 0
    with np.errstate(invalid="ignore"):  # infinity times zero, in rows that become zero next
        target = None if np.may_share_memory(given, features) else features  # a copy may be overwritten
        clipped = np.multiply(features, scale[:, None].astype(np.float32), out=target)
    clipped[broken] = 0
    hold("clipped rows", row_lengths(clipped[:LOOKED_AT]), norm)
    return clipped


def _factors(squared: np.ndarray, norm: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        scale = np.minimum(1.0, norm / np.sqrt(squared)) if np.isfinite(norm) else np.ones_like(squared)
    scale[scale < 1] *= 1 - 1e-6
    return scale
