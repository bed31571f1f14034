"""Subgroups from the columns of a table: as they are, or numbers cut into bands (data/bands.py).

Which bands there are stands in the config, so that a record's group depends on that record alone.
"""

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.text import composed
from dpstudy.data.bands import UNKNOWN, Entry, band_of, check_entries, group_name
from dpstudy.data.table import TextTable


def groups_of(table: TextTable, entries: list[Entry]) -> dict[str, np.ndarray]:
    """Name -> (n,) strings, the group of each row of the table.

    An empty field of a banded column is the group "unknown"; a column that is taken as it is must have a value.

    Raises:
        StudyError: a column is missing, a value is missing or no number, or `check_entries` finds a mistake.
    """
    check_entries(entries, "group_columns")
    return {
        group_name(entry): _as_it_is(table.column(entry)) if isinstance(entry, str) else _banded(table, entry)
        for entry in entries
    }


def _as_it_is(values: np.ndarray) -> np.ndarray:
    return np.array([composed(value) for value in values], dtype=object)


def _banded(table: TextTable, entry: dict) -> np.ndarray:
    bands = np.empty(table.rows, dtype=object)
    for row, text in enumerate(table.column(entry["column"], empty=True)):
        bands[row] = band_of(text, entry["bands"])
        if bands[row] is None:
            point = " with a point" if "," in text else ""
            raise StudyError(
                f"{table.where(row)}: {text!r} in the column {entry['column']!r} is no number; `bands` need a number"
                f"{point}, or an empty field for {UNKNOWN}"
            )
    return bands
