"""Noise correlated across steps: the banded matrix mechanism, for first-order training.

Independent noise stays in the weights for good: after t steps of descent they have the noise of t steps. Here the noise
of a step takes back part of what earlier steps added. With G the (T, d) clipped gradient sums of all steps, C a
lower-triangular Toeplitz matrix whose columns have `bands` entries c_0, c_1, ... and Z independent noise, C G + Z is
released row by row, and training takes C^-1 (C G + Z) = G + C^-1 Z (Choquette-Choo et al. 2023, arXiv 2306.08153). The
coefficients are those of the square root of the matrix that sums gradients up, momentum included, cut to the band and
scaled to a column of length 1 (Kalinin and Lampert 2024, arXiv 2405.13763): with one band it is DP-SGD.

Privacy: each unit belongs to one of `bands` groups, drawn independently of everything else, and takes part in every
`bands`-th step only, there by Poisson sampling (sampling.py). What it adds in a step, of norm at most C, goes into
`bands` rows with coefficients of length 1, and no two steps of its own meet in a row. In the coordinate along these
rows each of its at most ceil(T/bands) steps is hence a Gaussian mechanism on a Poisson sample of the group, whatever
earlier releases made of the gradients (Theorem 4 there), and those are the events of the ledger. `bands` steps are one
release of as many tensors: a unit takes part in each release at most once.
"""

from collections import defaultdict, deque
from collections.abc import Iterable

import numpy as np

from dpstudy.core.arrays import Array, add_scaled
from dpstudy.methods.releases import released_array
from dpstudy.privacy.noise import NoiseSource


def coefficients(bands: int, momentum: float = 0.0) -> np.ndarray:
    """(bands,) the first column of C, of length 1: of ((1 - x)(1 - momentum x))^(-1/2), cut to the band.

    >>> coefficients(1), (coefficients(3) / coefficients(3)[0]).round(4)
    (array([1.]), array([1.   , 0.5  , 0.375]))
    """
    root = np.cumprod([1.0, *((2 * i - 1) / (2 * i) for i in range(1, bands))])  # of (1 - x)^(-1/2)
    column = np.convolve(root, root * momentum ** np.arange(bands))[:bands]
    return column / np.linalg.norm(column)


class BandedReleases:
    """Releases of the clipped gradient sums of successive steps, with noise correlated over `bands` of them.

    It holds private sums of earlier steps, and is never written to a file.

    Args:
        bands: 1: independent noise.
        momentum: of the optimiser, 0 where it has none.
    """

    def __init__(self, bands: int, momentum: float = 0.0):
        self._first, *self._later = coefficients(bands, momentum).tolist()
        self._sums: dict[str, deque[Array]] = defaultdict(lambda: deque(maxlen=bands - 1))
        self._estimates: dict[str, deque[Array]] = defaultdict(lambda: deque(maxlen=bands - 1))

    def released(
        self, source: NoiseSource, name: str, gradient: Array, std: float, step: int, tensor: str = ""
    ) -> Array:
        """The released estimate of the gradient sum of a step (from 1), float32; `gradient` is left as it is.

        Args:
            std: noise multiplier x clipping norm.
            tensor: of a gradient of several; each goes through the same steps, in their order.
        """
        if not self._later:
            return released_array(source, name, gradient, std, step, tensor)
        release, row = divmod(step - 1, 1 + len(self._later))
        mixed = self._first * gradient
        self._add_earlier(mixed, self._sums[tensor], 1.0)
        self._sums[tensor].append(gradient + 0.0)
        return self.estimate(released_array(source, name, mixed, std, release + 1, f"{tensor} {row}"), tensor)

    def estimate(self, row: Array, tensor: str = "") -> Array:
        """The next row of C^-1 Y, where this is the next of Y."""
        estimate = row + 0.0
        self._add_earlier(estimate, self._estimates[tensor], -1.0)
        estimate /= self._first
        self._estimates[tensor].append(estimate + 0.0)
        return estimate

    def _add_earlier(self, total: Array, earlier: Iterable[Array], sign: float) -> None:
        """Add the rows of earlier steps, the oldest first, with their coefficients."""
        for factor, values in zip(self._later, reversed(list(earlier)), strict=False):
            add_scaled(total, values, sign * factor)
