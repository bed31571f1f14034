"""Rows worked on in blocks of one fixed size, so that what becomes of a row does not depend on how many are beside it.

Libraries take other kernels, which round otherwise, for matrices of another shape.
"""

from collections.abc import Callable

import numpy as np


def in_blocks(work: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, size: int) -> np.ndarray:
    """What `work` makes of rows (n, ...), at least one, in blocks of `size`; the last is filled up with zeros."""
    made = []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        if missing := size - len(part):
            part = np.concatenate([part, np.zeros((missing, *rows.shape[1:]), rows.dtype)])
        made.append(work(part)[: size - missing])
    return np.concatenate(made)
