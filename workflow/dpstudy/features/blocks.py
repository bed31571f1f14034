"""Computing on blocks of a fixed number of rows, so that a row's result does not depend on the rows beside it.

Libraries take other kernels, which round otherwise, for matrices of another shape.
"""

from collections.abc import Callable

import numpy as np


def in_blocks(work: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, size: int) -> np.ndarray:
    """The results of `work` on rows (n, ...), at least one, in blocks of `size`; the last is padded with zeros."""
    made = []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        if missing := size - len(part):
            part = np.concatenate([part, np.zeros((missing, *rows.shape[1:]), rows.dtype)])
        made.append(work(part)[: size - missing])
    return np.concatenate(made)
