"""A single difference between two results folders, and helpers that find differences in nested documents."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from dpstudy.core.errors import StudyError

# What a change is of. ONLY: a cell, file or row that one tree lacks.
ONLY, MADE_BY, SETTING, LEDGER = "only", "made by", "setting", "ledger"
METRIC, GROUP, TABLE = "metric", "group", "table"


@dataclass(frozen=True)
class Change:
    """One difference.

    Attributes:
        place: a cell's name, or a table's file with its row.
        part: what it is of: ONLY, MADE_BY, SETTING, LEDGER, METRIC, GROUP or TABLE.
        what: its name, such as "hyperparameters.steps".
        a, b: its value in each tree, None where that has none; of metrics the means over seeds.
        error: the standard error of the difference of two means; None where it is not known.
    """

    place: str
    part: str
    what: str
    a: object
    b: object
    error: float | None = None

    @property
    def difference(self) -> float | None:
        """The value in B minus the value in A; None unless both are numbers."""
        return self.b - self.a if is_number(self.a) and is_number(self.b) else None

    @property
    def beyond(self) -> bool | None:
        """Whether two means differ by more than two standard errors; None where the errors are not known."""
        if self.error is None or self.difference is None:
            return None
        return abs(self.difference) > 2 * self.error


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is an int or float, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def changes(place: str, part: str, a: Mapping[str, object], b: Mapping[str, object]) -> Iterator[Change]:
    """The changes between two mappings from names to plain values, in A's order, then B's."""
    for name in dict.fromkeys((*a, *b)):
        if a.get(name) != b.get(name):
            yield Change(place, part, name, a.get(name), b.get(name))


def flatten(content: object, where: str, name: str = "") -> dict[str, object]:
    """Nested mappings and lists as one mapping from dotted names to plain values; null becomes "null".

    Raises:
        StudyError: a number is NaN or infinite; `where` is the file.
    """
    if isinstance(content, dict | list):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        values: dict[str, object] = {}
        for key, value in items:
            values |= flatten(value, where, f"{name}.{key}" if name else str(key))
        return values
    if isinstance(content, float) and not math.isfinite(content):
        raise StudyError(f"{where}: {name} is {content}, which no file of a study holds; run that study again")
    return {name: "null" if content is None else content}
