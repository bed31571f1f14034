"""Accuracies, and their comparison."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dpstudy.privacy.printed import upper_bound

ROUNDING = 1e-9  # printed numbers have one digit after the point: what is smaller is arithmetic, not a difference


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
    if error is None or abs(difference) <= 2 * error + ROUNDING:
        return 0
    return 1 if difference > 0 else -1
