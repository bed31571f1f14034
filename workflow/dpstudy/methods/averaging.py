"""A person's records averaged: each adds one over the number of the person's records of what it would add alone.

A record whose contribution has norm C at most then adds C/r at most, r being how many records of its person are learned
from, and all of these together C: that is how far a sum moves where a person comes or goes, however many records there
are of one. r is a function of that person's own records, so that nobody else's contributions move. 1/r is rounded down,
and where sums are exact (exact.py) what is added is rounded towards zero to the grid after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from dpstudy.core.arrays import Array, place_of
from dpstudy.core.errors import StudyError
from dpstudy.methods.exact import BELOW, truncated
from dpstudy.methods.row_map import ROUNDED

Weighted = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def count_records(subjects: np.ndarray) -> np.ndarray:
    """(n,) how many of the n records are of the same person.

    >>> count_records(np.array(["a", "b", "a"]))
    array([2, 1, 2])
    """
    _, number, counts = np.unique(subjects, return_inverse=True, return_counts=True)
    return counts[number]


def weights_of(counts: np.ndarray) -> np.ndarray:
    """(n,) float64 weights of records whose persons have so many; a person's add up to 1 at most."""
    return BELOW / np.maximum(np.asarray(counts, np.float64), 1)


class Subjects(list):
    """(features, labels) batches that say whose their rows are.

    Args:
        subjects: (n,) of all rows.
    """

    def __init__(self, batches: Iterable[tuple[np.ndarray, np.ndarray]], subjects: np.ndarray):
        super().__init__(batches)
        self._subjects = subjects

    def subjects(self) -> np.ndarray:
        """(n,) whose each row is."""
        return self._subjects

    def counted(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Batches that say how many rows each one's subject has too."""
        counts, place = count_records(self._subjects), 0
        for features, labels in self:
            yield features, labels, counts[place : place + len(labels)]
            place += len(labels)


def weighted(batches: Iterable, averaged: bool) -> Iterator[Weighted]:
    """(features, labels, weights) of (features, labels) batches; weights are None where nothing is averaged.

    Args:
        batches: where records are averaged, has a method `counted()`: (features, labels, counts) batches.

    Raises:
        StudyError: they are to be averaged, and nobody knows how many records each person has.
    """
    if not averaged:
        yield from ((features, labels, None) for features, labels in batches)
        return
    if not hasattr(batches, "counted"):
        raise StudyError("contributions: average needs to know how many records each person has; use sum")
    for features, labels, counts in batches.counted():
        yield features, labels, weights_of(counts)


def scaled(features: Array, weights: Array | None, grid: float | None = None) -> Array:
    """(n, d) rows times their weights, of the features' own type.

    Args:
        grid: rows are rounded towards zero to its multiples: of exact sums.
    """
    if weights is None:
        return features
    where = place_of(features)
    if grid is None:
        return features * where.array(ROUNDED * weights, str(features.dtype).removeprefix("torch."))[:, None]
    return truncated(where.array(features, "float64") * where.array(BELOW * weights, "float64")[:, None], grid)
