"""Grids of accuracies by (data set, pre-training, method, epochs, epsilon), printed or ours, and their comparison."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dpstudy.privacy.printed import upper_bound

_ROUNDING = 1e-9  # printed numbers have one digit after the point: what is smaller is arithmetic, not a difference


@dataclass(frozen=True)
class Value:
    """An accuracy in percent, or a difference of accuracies in points.

    Attributes:
        mean: the number; None where only a bound is printed.
        error: its standard error over seeds; 0 for a printed number, None where a single seed gives none.
        at_most: the bound that is printed instead of a number.
    """

    mean: float | None
    error: float | None = 0.0
    at_most: float | None = None

    @property
    def number(self) -> float:
        """The mean, for callers that know it exists.

        Raises:
            ValueError: only a bound is printed.
        """
        if self.mean is None:
            raise ValueError(f"no number is printed, only a bound: at most {self.at_most}")
        return self.mean

    def __sub__(self, other: "Value") -> "Value | None":
        """The difference of two independent numbers; None where one is only a bound."""
        if self.mean is None or other.mean is None:
            return None
        return Value(self.mean - other.mean, _pooled([self, other]))


Row = tuple[str, int]  # (method, epochs)
Triples = Iterable[tuple[object, Value | None, Value | None]]  # (name of a cell, left, right)


def number(epsilon: float) -> str:
    """An epsilon in the spelling of the tables."""
    return upper_bound(epsilon, digits=17)  # all that there are


def _pooled(values: Iterable[Value]) -> float | None:
    errors = [value.error for value in values]
    known = [error for error in errors if error is not None]
    return math.sqrt(sum(error**2 for error in known)) if len(known) == len(errors) else None


def average(values: Iterable[Value | None]) -> Value | None:
    """The mean of the values that exist; None where none does."""
    known = [value for value in values if value is not None and value.mean is not None]
    if not known:
        return None
    error = _pooled(known)
    return Value(sum(value.number for value in known) / len(known), None if error is None else error / len(known))


def highest(values: Iterable[Value | None]) -> Value | None:
    """The highest of the numbers that exist; None where none does."""
    known = (value for value in values if value is not None and value.mean is not None)
    return max(known, key=lambda value: value.number, default=None)


def compare(left: Value | None, right: Value | None) -> int | None:
    """1 if `left` is significantly greater, -1 if smaller, 0 for a tie, None if it cannot be told.

    A tie is a difference within two standard errors, or one whose standard error a single seed does not tell. None: one
    is missing, or a bound leaves it open.
    """
    if left is None or right is None:
        return None
    if left.mean is None or right.mean is None:
        if left.mean is not None and right.at_most is not None and left.mean > right.at_most:
            return 1
        if right.mean is not None and left.at_most is not None and right.mean > left.at_most:
            return -1
        return None
    difference, error = left.mean - right.mean, _pooled([left, right])
    if error is None or abs(difference) <= 2 * error + _ROUNDING:
        return 0
    return 1 if difference > 0 else -1


@dataclass(frozen=True)
class Place:
    """A setting in which methods are compared: a data set with the features of one pre-training."""

    dataset: str
    pretraining: str

    def __str__(self) -> str:
        return f"{self.dataset}/{self.pretraining}"


@dataclass(frozen=True)
class Grid:
    """A grid of accuracies.

    Attributes:
        values: (place, method, epochs, epsilon) -> value; epsilon is math.inf without privacy.
        order: pre-trainings, from the least to the most.
        classes: data set -> number of classes.
    """

    values: Mapping[tuple[Place, str, int, float], Value]
    order: tuple[str, ...] = ()
    classes: Mapping[str, int] = field(default_factory=dict)

    def at(self, dataset: str | None = None, pretraining: str | None = None) -> "Grid":
        """The part of the grid for one data set, or for one pre-training."""
        places = [p for p in self.places if dataset in (None, p.dataset) and pretraining in (None, p.pretraining)]
        kept = {key: value for key, value in self.values.items() if key[0] in places}
        return Grid(kept, self.order, self.classes)

    @property
    def places(self) -> list[Place]:
        """The places, in order."""
        return list(dict.fromkeys(key[0] for key in self.values))

    @property
    def epsilons(self) -> list[float]:
        """The finite epsilons, ascending."""
        return sorted({key[3] for key in self.values if not math.isinf(key[3])})

    @property
    def rows(self) -> list[Row]:
        """The (method, epochs) pairs, in order."""
        return list(dict.fromkeys(key[1:3] for key in self.values))

    def cells(self, low: float = 0.0, high: float = math.inf) -> Iterator[tuple[str, Place, float]]:
        """(name, place, epsilon) for every place and finite epsilon in [low, high)."""
        for place in self.places:
            for epsilon in self.epsilons:
                if low <= epsilon < high:
                    yield f"{place} at {number(epsilon)}", place, epsilon

    def get(self, place: Place, method: str, epochs: int, epsilon: float) -> Value | None:
        """The value of a cell, or None."""
        return self.values.get((place, method, epochs, epsilon))

    def _at(self, place: Place, epsilon: float) -> dict[Row, Value]:
        return {key[1:3]: value for key, value in self.values.items() if (key[0], key[3]) == (place, epsilon)}

    def best(
        self, place: Place, epsilon: float, methods: Iterable[str] | None = None, without: Iterable[Row] = ()
    ) -> Value | None:
        """The highest value of some methods over their epochs, or a bound where there is no number.

        None where one of several methods was not run: the best of the others may be no best.
        """
        rows = {row: value for row, value in self._at(place, epsilon).items() if row not in without}
        if methods is not None:
            rows = {row: value for row, value in rows.items() if row[0] in methods}
            if set(methods) - {method for method, _ in rows}:
                return None
        return highest(rows.values()) or next(iter(rows.values()), None)

    def leading(self, place: Place, epsilon: float, rows: Iterable[Row]) -> tuple[Value | None, Value | None]:
        """(highest number of some (method, epochs) rows, best of all others): whether these rows are the best.

        No best of the others where a method of the grid was not run: it could be the best.
        """
        whole = {method for method, _ in self._at(place, epsilon)} == {method for method, _ in self.rows}
        others = self.best(place, epsilon, without=rows) if whole else None
        return highest(self.get(place, *row, epsilon) for row in rows), others
