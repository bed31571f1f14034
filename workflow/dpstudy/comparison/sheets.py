"""Differences between two CSV files of one table or figure.

A row is known by the names that it begins with (data set, entry, epsilon and the like); of rows with the same names,
the first of A is held against the first of B.
"""

import csv
import math
import os
from collections import Counter
from collections.abc import Iterator

from dpstudy.comparison.change import ONLY, TABLE, Change
from dpstudy.core.errors import StudyError

# What rows go by, where a file begins with it; the first column that is none of these is the first that is compared.
_NAMES = frozenset(
    "paper section claim kind series panel line row model algorithm accounting by search dataset column group features "
    "neighbours class method entry epsilon epochs step records label value".split()
)
_TIMES = ("seconds", "minutes", "hours")  # measured: another run has others
_Row = dict[str, str]


def sheet_changes(place: str, a: str | os.PathLike, b: str | os.PathLike) -> Iterator[Change]:
    """The changes between two CSV files: columns and rows in one file only, then values; run times are ignored.

    Args:
        place: the file's name in both trees.

    Raises:
        StudyError: a file is no CSV with a header.
    """
    (columns_a, rows_a), (columns_b, rows_b) = _read(a), _read(b)
    for column in dict.fromkeys((*columns_a, *columns_b)):
        if (column in columns_a) != (column in columns_b):
            yield Change(place, ONLY, f"column {column}", *_only(column in columns_a))
    keys = [column for column in columns_a if column in columns_b and column in leading(columns_a) & leading(columns_b)]
    values = [column for column in columns_a if column in columns_b and column not in keys]
    before, after = _by_name(rows_a, keys), _by_name(rows_b, keys)
    for name in dict.fromkeys((*before, *after)):
        if name not in before or name not in after:
            yield Change(f"{place} {name}", ONLY, "row", *_only(name in before))
            continue
        for column in values:
            old, new = _value(before[name][column]), _value(after[name][column])
            if old != new:
                yield Change(f"{place} {name}", TABLE, column, old, new)


def leading(columns: list[str]) -> set[str]:
    """The columns at a file's left that identify its rows.

    >>> sorted(leading(["dataset", "epsilon", "ours", "entry"]))
    ['dataset', 'epsilon']
    """
    end = next((number for number, column in enumerate(columns) if column not in _NAMES), len(columns))
    return set(columns[:end])


def _read(path: str | os.PathLike) -> tuple[list[str], list[_Row]]:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            header, *lines = list(csv.reader(file, strict=True)) or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise StudyError(f"{path}: not a CSV file ({error}); delete it and run that study again") from None
    if not header or len(set(header)) < len(header) or any(len(line) != len(header) for line in lines):
        raise StudyError(
            f"{path}: damaged, not every line has the header's columns; delete it and run that study again"
        )
    columns = [column for column in header if not any(time in column for time in _TIMES)]
    return columns, [dict(zip(header, line, strict=True)) for line in lines]


def _by_name(rows: list[_Row], keys: list[str]) -> dict[str, _Row]:
    row_by_name: dict[str, _Row] = {}
    seen: Counter[str] = Counter()
    for row in rows:
        name = "/".join(row[key] or "-" for key in keys)
        seen[name] += 1
        row_by_name[f"{name} ({seen[name]})".strip() if seen[name] > 1 else name] = row
    return row_by_name


def _value(text: str) -> object:
    """A field as a number where it is one, None where it is empty."""
    try:
        number = float(text)
    except ValueError:
        return text or None
    return number if math.isfinite(number) else text


def _only(in_a: bool) -> tuple[str | None, str | None]:
    return ("there", None) if in_a else (None, "there")
