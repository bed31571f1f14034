"""Privacy units of several records, such as persons with several images.

Adding or removing a unit adds or removes all its records, at most `problem.unit_records` of them. A sum to which each
record contributes at most C changes by at most unit_records x C, and that is the sensitivity of every release here.
Where steps take a random part of the data, units are drawn, and all records of a drawn unit take part: the unit takes
part with the public probability q, as the accountants have it for a record.

Where whole passes go over the records in an order that need not be secret, a record's place in it goes by its number
among all n, those counted that de-duplication left out: were the others to move up, one record would move them all.
"""

from collections.abc import Iterable

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.methods.problem import Problem


class Units:
    """Which rows belong to which unit.

    Args:
        rows: how many there are.
        names: (rows,) the unit of each; None: each row is a unit.

    Attributes:
        count: of units (private, as the number of rows is).
    """

    def __init__(self, rows: int, names: np.ndarray | None = None):
        self.count, self._order = rows, None
        self._at: np.ndarray | None = None
        if names is not None:
            if len(names) != rows:
                raise ValueError(f"{rows} rows but the units of {len(names)}")
            known, number = np.unique(names, return_inverse=True)
            self.count = len(known)
            self._order = np.argsort(number, kind="stable")
            self._ends = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=self.count))])

    def seat(self, places: np.ndarray, n: int) -> None:
        """Give each unit, of one row, its public place among n; without this they have the first ones."""
        if self._order is not None or len(places) != self.count:
            raise ValueError(f"{len(places)} places for {self.count} units, each of which must be one row")
        self._at = np.full(n, -1)
        self._at[places] = np.arange(self.count)

    def at(self, places: np.ndarray) -> np.ndarray:
        """The units at these public places, in their order; some may be empty."""
        if self._at is None:
            return places[places < self.count]
        seated = self._at[places]
        return seated[seated >= 0]

    @property
    def largest(self) -> int:
        """The largest number of rows of any unit."""
        return 1 if self._order is None else int(np.diff(self._ends).max(initial=0))

    def rows(self, index: np.ndarray | None) -> np.ndarray | None:
        """The rows of the units `index`, in ascending order; None stands for all."""
        if index is None or self._order is None:
            return index
        parts = [self._order[self._ends[unit] : self._ends[unit + 1]] for unit in index.tolist()]
        return np.sort(np.concatenate([self._order[:0], *parts]))


def units_of(batches: Iterable, rows: int, problem: Problem, needed: bool, placed: bool = False) -> Units:
    """The units of the rows that batches hold, in their order.

    Args:
        batches: has a method `subjects()` where units have several records, and `places()` where some may be left out.
        needed: whether steps draw units; where all take part in every step it does not matter who is who.
        placed: whether they are asked for by public places.

    Raises:
        StudyError: nobody knows whose the records are, or a unit has more than the problem says.
    """
    if problem.unit_records == 1 or not needed:
        units = Units(rows)
        if placed and hasattr(batches, "places"):
            units.seat(batches.places(), problem.n)
        return units
    if not hasattr(batches, "subjects"):
        raise StudyError("mini-batches of persons need to know whose each record is; use full batches")
    persons = Units(rows, batches.subjects())
    if persons.largest > problem.unit_records:
        raise StudyError(f"a subject has {persons.largest} records, but per_subject is {problem.unit_records}")
    return persons


def single_records(method: str, problem: Problem, what: str) -> None:
    """Refuse privacy units of several records, for which `what` has no bound.

    Raises:
        StudyError: they may have several.
    """
    if problem.unit_records > 1:
        raise StudyError(
            f"{method}: {what} has no bound for subjects with several records; set per_subject: 1 for the data set"
        )
