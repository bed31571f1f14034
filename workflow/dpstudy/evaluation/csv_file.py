"""CSV files in one fixed dialect: commas, newlines, floats that round-trip exactly, empty fields for missing values.

Spreadsheets take text that begins with =, +, - or @ for a formula, and names of files, classes and groups are not ours
to trust: such text gets an apostrophe in front, as spreadsheets themselves write it.
"""

import csv
import os
from collections.abc import Iterable, Sequence

from dpstudy.core.files import atomic

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(path: str | os.PathLike, header: Sequence[str], rows: Iterable[Iterable]) -> None:
    """Write a header and rows; None becomes an empty field."""
    with atomic(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(guarded, header))
        writer.writerows(map(guarded, row) for row in rows)


def guarded(value: object) -> object:
    """The field, prefixed by an apostrophe where a spreadsheet would take its text for a formula.

    >>> guarded("=1+1"), guarded("-0.5"), guarded(-0.5), guarded("a=b")
    ("'=1+1", '-0.5', -0.5, 'a=b')
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) and not _is_number(value) else value


def unguarded(value: str) -> str:
    """The inverse of `guarded` for text.

    >>> unguarded("'=1+1"), unguarded("'tis"), unguarded("-0.5")
    ('=1+1', "'tis", '-0.5')
    """
    return value[1:] if value[:1] == "'" and value[1:].startswith(_FORMULA) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
