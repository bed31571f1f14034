"""Checks after clipping that contributions to a private sum do not exceed their norm bound.

Every sensitivity in a ledger is the norm that some clipping promises. Where contributions are made, those of some
records are measured as they enter the sum, by another computation than the one that clipped them; a run in which one is
too long ends there, and nothing is released.
"""

import itertools
import math

import numpy as np

LARGEST_NORM = 1e15  # beyond it float32 holds neither a norm's square nor the factor that clips it
SMALLEST_NORM = 1e-15  # below it the square is lost, and a record would be scaled to more than unit norm
LOOKED_AT = 16  # records of each block
_SMALL, _ONE_IN = 256, 16  # of blocks with fewer rows one in _ONE_IN is checked: a check takes as long as their sum
_ROUNDING = 1e-4  # relative


def hold(what: str, lengths, bound: float) -> None:
    """Raise an error if the norm of a contribution exceeds its bound.

    Args:
        what: is contributed to, as the message names it.
        lengths: (rows,) Euclidean norms, a numpy array or a tensor; NaN where a record takes no part.
        bound: infinite where nothing is clipped.

    Raises:
        RuntimeError: one is longer; private, and so not said by how much.
    """
    if math.isinf(bound):
        return
    if bool((lengths > bound * (1 + _ROUNDING)).any()):
        raise RuntimeError(f"{what}: a record contributes more than its bound of {bound:g}; the clipping is at fault")


_small_blocks = itertools.count()


def due(rows: int) -> bool:
    """Whether a block of `rows` rows is checked: each large one, and one in _ONE_IN of the small ones."""
    return rows >= _SMALL or next(_small_blocks) % _ONE_IN == 0


def row_lengths(rows: np.ndarray) -> np.ndarray:
    """(rows,) Euclidean norms, computed in float64, of (rows, d) float32 values."""
    return np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64))
