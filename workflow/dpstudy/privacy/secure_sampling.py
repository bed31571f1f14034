"""Secure random sampling and ordering of records, from OpenSSL's generator, seeded by the system's entropy.

Amplification by sampling holds as long as nobody can tell who was taken, and the cost of the best of a secret number of
runs as long as nobody can tell that number. The generators of numpy are fast, but their state follows from some of
their output: a few batches that somebody knows, or guesses, would give away all others.
"""

import math
from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import DTypeLike

from dpstudy.privacy.secure_noise import BLOCK, words


class SecureGenerator:
    """A stand-in for `numpy.random.Generator` whose draws reveal nothing of other draws."""

    @overload
    def random(self, size: None = None, dtype: DTypeLike = np.float64) -> float: ...

    @overload
    def random(self, size: int | Sequence[int], dtype: DTypeLike = np.float64) -> np.ndarray: ...

    def random(self, size=None, dtype=np.float64):
        """Multiples of 2^-53 in [0, 1), uniform."""
        drawn = _uniform(math.prod(_shape(size)))
        return float(drawn[0]) if size is None else drawn.reshape(_shape(size)).astype(dtype, copy=False)

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A uniform number between `low` and `high`."""
        return low + (high - low) * self.random()

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint: bool = False) -> np.ndarray | int:
        """Exactly uniform integers in [low, high), or [0, low) where `high` is None; the bounds may be arrays."""
        low, high = (0, low) if high is None else (low, high)
        spans = np.asarray(high) - np.asarray(low) + endpoint
        if (spans < 1).any():
            raise ValueError(f"no integer lies between {low} and {high}")
        shape = spans.shape if size is None else _shape(size)
        spans = np.broadcast_to(spans.astype(np.uint64), shape).ravel()
        drawn = words(len(spans)).copy()
        # the last words, those beyond a multiple of the span, would favour the smallest integers
        over = (~np.uint64(0) - spans + np.uint64(1)) % spans
        while len(again := np.flatnonzero(drawn > ~np.uint64(0) - over)):
            drawn[again] = words(len(again))
        numbers = ((drawn % spans).astype(np.int64).reshape(shape) + low).astype(dtype)
        return numbers if numbers.ndim else int(numbers)

    def permutation(self, count: int) -> np.ndarray:
        """A uniformly random permutation of 0 .. count - 1."""
        while True:
            keys = words(count)
            order = keys.argsort()
            ranked = keys[order]
            if not (ranked[1:] == ranked[:-1]).any():  # of equal keys the order would not be random
                return order

    def choice(self, values: Sequence | np.ndarray | int, size: int, replace: bool = False) -> np.ndarray:
        """`size` distinct values drawn from `values`, or from 0 .. values - 1."""
        all_of_them = np.arange(values) if isinstance(values, int) else np.asarray(values)
        if replace or size > len(all_of_them):
            raise ValueError(f"{size} of {len(all_of_them)} values, each once at most")
        return all_of_them[self.permutation(len(all_of_them))[:size]]

    def geometric(self, chance: float) -> int:
        """A geometric random number: the number of attempts until the first success."""
        attempts = 1
        while self.random() >= chance:
            attempts += 1
        return attempts

    def standard_normal(self, size) -> np.ndarray:
        """Standard normal numbers for a random start, which is not secret: numpy's, freshly seeded."""
        return np.random.default_rng([int(word) for word in words(4)]).standard_normal(size)


AnyGenerator = np.random.Generator | SecureGenerator  # what `NoiseSource.sampling` gives


def _shape(size) -> tuple[int, ...]:
    return () if size is None else tuple(size) if np.iterable(size) else (int(size),)


def _uniform(count: int) -> np.ndarray:
    drawn = np.empty(count)
    for start in range(0, count, BLOCK):
        part = drawn[start : start + BLOCK]
        np.multiply((words(len(part)) >> np.uint64(11)).view(np.int64), 2.0**-53, out=part)
    return drawn
