"""Weights of records, at most 1: for averages over each person's records, and for classes (class weights).

A person's records averaged: each adds one over the number of the person's records of what it would add alone.

A record whose contribution has norm C at most then adds C/r at most, r being how many records of its person are learned
from, and all of these together C: that is how far a sum moves where a person comes or goes, however many records there
are of one. r is a function of that person's own records, so that nobody else's contributions move. 1/r is rounded down,
and where sums are exact (exact.py) what is added is rounded towards zero to the grid after that.

Weights of classes, which the config gives, are 1 at most: a record adds that part of what it would add, a function of
its own labels, and noise stays that of a record that counts in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from dpstudy.core.arrays import Array, place_of
from dpstudy.core.errors import StudyError
from dpstudy.methods.exact import BELOW, truncated
from dpstudy.methods.row_map import ROUNDED

NO_LABEL = "none"  # where records may have several labels: those that have none
Weighted = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def count_records(subjects: np.ndarray) -> np.ndarray:
    """(n,) number of the n records that belong to the same person.

    >>> count_records(np.array(["a", "b", "a"]))
    array([2, 1, 2])
    """
    _, number, counts = np.unique(subjects, return_inverse=True, return_counts=True)
    return counts[number]


def weights_of(counts: np.ndarray) -> np.ndarray:
    """(n,) float64 weights 1/count of records, by their person's number of records; a person's add up to 1 at most."""
    return BELOW / np.maximum(np.asarray(counts, np.float64), 1)


class Subjects(list):
    """(features, labels) batches that know the subject of each row.

    Args:
        subjects: (n,) of all rows.
    """

    def __init__(self, batches: Iterable[tuple[np.ndarray, np.ndarray]], subjects: np.ndarray):
        super().__init__(batches)
        self._subjects = subjects

    def subjects(self) -> np.ndarray:
        """(n,) subject of each row."""
        return self._subjects

    def counted(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(features, labels, counts) batches; counts are how many rows the subject of each row has."""
        counts, place = count_records(self._subjects), 0
        for features, labels in self:
            yield features, labels, counts[place : place + len(labels)]
            place += len(labels)


def weighted(batches: Iterable, averaged: bool, class_weights: Sequence[float] = ()) -> Iterator[Weighted]:
    """(features, labels, weights) from (features, labels) batches; weights are None where every record counts in full.

    Args:
        batches: where records are averaged, has a method `counted()`: (features, labels, counts) batches.
        class_weights: as of `Problem`.

    Raises:
        StudyError: they are to be averaged, and nobody knows how many records each person has.
    """
    counted = getattr(batches, "counted", None)
    if averaged and counted is None:
        raise StudyError("contributions: average needs to know how many records each person has; use sum")
    for features, labels, *counts in counted() if averaged and counted else batches:
        weights = weights_of(counts[0]) if averaged else None
        if class_weights:
            of_class = by_class(np.asarray(labels), class_weights)
            weights = of_class if weights is None else weights * of_class
        yield features, labels, weights


def by_class(labels: np.ndarray, class_weights: Sequence[float]) -> np.ndarray:
    """(n,) float64 class weights of records: the largest among a record's labels, the last weight where it has none.

    >>> by_class(np.array([1, 0]), (0.2, 1.0, 1.0)).tolist()
    [1.0, 0.2]
    >>> by_class(np.array([[1, 1], [0, 0]]), (0.2, 0.5, 0.1)).tolist()
    [0.5, 0.1]
    """
    known = np.array(class_weights, np.float64)
    if labels.ndim == 1:
        return known[np.clip(labels, 0, len(known) - 2)]  # labels out of range are refused after this
    return np.where(labels.any(1), np.where(labels != 0, known[:-1], 0.0).max(1), known[-1])


def weights_by_name(given: Mapping[str, float], classes: Sequence[str], several: bool) -> tuple[float, ...]:
    """(m + 1,) class weights as `Problem` holds them, from {class: weight}; () where none are given.

    Args:
        given: class -> its weight, 1 of those that are not named; NO_LABEL of records that bear none of several.

    Raises:
        StudyError: a class that there is not, or no weight is 1.
    """
    if not given:
        return ()
    known = (*classes, *([NO_LABEL] if several and NO_LABEL not in classes else []))
    for name in given:
        if name not in known:
            raise StudyError(f"class_weights: there is no class {name!r}; there are {', '.join(known)}")
    weights = tuple(float(given.get(name, 1.0)) for name in (*classes, NO_LABEL))
    if max(weights[: len(known)]) < 1:
        raise StudyError("class_weights: the largest must be 1, since noise is that of a record that counts in full")
    return weights


def scaled(features: Array, weights: Array | None, grid: float | None = None) -> Array:
    """(n, d) rows times their weights, in the dtype of the features.

    Args:
        grid: rows are rounded towards zero to its multiples: of exact sums.
    """
    if weights is None:
        return features
    where = place_of(features)
    if grid is None:
        return features * where.array(ROUNDED * weights, str(features.dtype).removeprefix("torch."))[:, None]
    return truncated(where.array(features, "float64") * where.array(BELOW * weights, "float64")[:, None], grid)
