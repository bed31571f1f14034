"""Gaussian noise on a grid, from the operating system's entropy, whose distribution is known exactly.

Noise of floating-point numbers betrays what it was added to: which numbers a sum can reach depends on the summands
(Mironov 2012, "On significance of the least significant bits for differential privacy"). Here the query is first
rounded to the grid of a power of two, g, and the noise is g K, K an integer of law

    p(k) ~ exp(-k^2 / (2 s^2)),    s = std/g in [2^43, 2^44).

So a release is round(query) + g K, exactly; what follows (a sum in float64, which rounds correctly, a cast) is a
function of it. K is a standard normal times s, rounded to integers, within a factor of 1 +- 2^-80 for each k: hence the
release is what the Gaussian mechanism gives of round(query), rounded. Rounding the query moves two neighbours apart by
at most g sqrt(D) for D numbers, 2^-43 z sqrt(D) of the sensitivity at noise multiplier z: below the 2^-16 by which the
noise is made larger (`MARGIN`) as long as z sqrt(D) <= 2^27.

K is drawn by rejection. Bins of 2^39 integers each have a whole number of 2^16 slots; one random word chooses a slot,
hence a bin, and a place in it; another, u of 53 bits, accepts k if u < a(k), where a(k) is proportional to p(k) divided
by the slots of its bin. The chances of slots and places are exact, and a(k) of order 1 is right to 2^-47 of itself;
beyond four standard deviations the bins have slots of their own, behind a few of the first, and are as exact to 2^-28
as far as eight. Beyond ten (a chance of 2^-75) nothing is drawn.
"""

import math
import ssl
from functools import lru_cache

import numpy as np

MARGIN = 2.0**-16  # by which noise is larger than what is accounted, for the rounding of the query
LARGEST = 2.0**27  # noise multiplier times the root of how many numbers are released, up to which the margin suffices
_GRID_BITS, _SLOT_BITS = 44, 16
_BINS_BITS = 5  # 2^5 bins in 2^44 integers, hence 16 to 32 in a standard deviation
_BODY, _END = 4, 10  # standard deviations: where the second table begins, and where it ends
_TAIL_SLOTS = 1 / 1024  # of the first table, that lead to the second
BLOCK = 1 << 13  # words: they stay in cache, and the C library reuses memory of this size


class GridGaussian:
    """A sampler of grid Gaussian noise of one standard deviation.

    Args:
        std: standard deviation, positive and finite.
        grid_bits, slot_bits: how fine grid and tables are; small ones are for tests, which go through all words.
    """

    def __init__(self, std: float, grid_bits: int = _GRID_BITS, slot_bits: int = _SLOT_BITS):
        mantissa, exponent = math.frexp(std)
        self.grid = math.ldexp(1.0, exponent - grid_bits)
        self.steps = math.ldexp(mantissa, grid_bits)  # s: the standard deviation on the grid
        self._width_bits, self._slot_bits = grid_bits - _BINS_BITS, slot_bits
        slots = 1 << slot_bits
        inner = math.ceil(_BODY * self.steps / self._width)
        outer = math.ceil(_END * self.steps / self._width)
        body = np.arange(-inner, inner)
        tail = np.concatenate([np.arange(-outer, -inner), np.arange(inner, outer)])
        self._tail_from = slots - max(1, round(_TAIL_SLOTS * slots))
        counts = _shared(self._highest(body), self._tail_from)
        scale = float((counts / self._highest(body)).min())  # a(k) = scale p(k)/(slots of its bin) <= 1
        tail_counts = _shared(self._highest(tail), slots)
        leading = scale * slots / (slots - self._tail_from)  # the same for a bin behind the slots that lead there
        if (leading * self._highest(tail) > tail_counts).any():
            raise ValueError(f"no table of {slots} slots has room for the tail")
        leads = slots - self._tail_from
        self._tables = [
            (np.repeat(np.append(body, 0), np.append(counts, leads)), _per_slot(scale, counts, leads)),
            (np.repeat(tail, tail_counts), _per_slot(leading, tail_counts)),
        ]

    @property
    def _width(self) -> int:
        return 1 << self._width_bits

    def _highest(self, bins: np.ndarray) -> np.ndarray:
        """p where it is highest in each bin, relative to p(0)."""
        nearest = np.where(bins < 0, -(bins + 1.0) * self._width + 1, bins * float(self._width))
        return np.exp(-0.5 * (nearest / self.steps) ** 2)

    def candidates(self, words: np.ndarray, tail: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """(n,) int64 integers k for random 64-bit `words`, and (n,) their acceptance probabilities a(k).

        In the first table (not `tail`) a word may lead to the second: its chance is negative.
        """
        slots = (words >> np.uint64(64 - self._slot_bits)).view(np.int64)
        bins, scales = self._tables[tail]
        integers = bins.take(slots)
        integers <<= self._width_bits
        integers += (words & np.uint64(self._width - 1)).view(np.int64)
        chances = integers * (1 / self.steps)
        np.square(chances, out=chances)
        chances *= -0.5
        np.exp(chances, out=chances)
        chances *= scales.take(slots)
        return integers, chances

    def noise(self, shape: tuple[int, ...]) -> np.ndarray:
        """Fresh noise g K as float64."""
        drawn = np.empty(math.prod(shape))
        done = 0
        while done < len(drawn):
            count = min(BLOCK, len(drawn) - done + (len(drawn) - done) // 16 + 16)
            integers, chances = self.candidates(words(count))
            further = np.flatnonzero(chances < 0)
            if len(further):
                integers[further], chances[further] = self.candidates(words(len(further)), tail=True)
            uniform = (words(count) >> np.uint64(11)) * 2.0**-53
            taken = integers[uniform < chances][: len(drawn) - done]
            np.multiply(taken, self.grid, out=drawn[done : done + len(taken)])
            done += len(taken)
        return drawn.reshape(shape)

    def rounded(self, query: np.ndarray) -> np.ndarray:
        """The query as float64, rounded to the grid; numbers of 2^53 grid steps or more are on it already."""
        on_grid = np.array(query, np.float64)
        on_grid /= self.grid
        np.rint(on_grid, out=on_grid)
        on_grid *= self.grid
        return on_grid


@lru_cache(maxsize=64)
def grid_gaussian(std: float) -> GridGaussian:
    """The cached sampler for one standard deviation."""
    return GridGaussian(std)


def _shared(weights: np.ndarray, slots: int) -> np.ndarray:
    """Whole numbers of `slots` in all, at least 1 each, near the proportions of `weights`."""
    counts = 1 + np.floor(weights / weights.sum() * (slots - len(weights))).astype(np.int64)
    counts[np.argsort(-weights)[: slots - counts.sum()]] += 1
    return counts


def _per_slot(scale: float, counts: np.ndarray, leads: int = 0) -> np.ndarray:
    """(slots,) what p(k) is multiplied by in each slot; negative in the last `leads`, which lead to another table."""
    return np.repeat(np.append(scale / counts, -1.0), np.append(counts, leads))


def words(count: int) -> np.ndarray:
    """(count,) random uint64 from OpenSSL's generator, seeded by the operating system's entropy."""
    return np.frombuffer(ssl.RAND_bytes(8 * count), np.uint64)
