"""Machine-readable output of a comparison: every change, as JSON or CSV."""

import json
import os
from collections.abc import Iterator
from operator import attrgetter

from dpstudy.comparison.change import ONLY, Change
from dpstudy.comparison.compare import Comparison, Found
from dpstudy.evaluation.csv_file import write_csv

COLUMNS = ("place", "part", "what", "a", "b", "difference", "standard_error", "beyond")
_VALUES = attrgetter("place", "part", "what", "a", "b", "difference", "error", "beyond")


def as_json(comparison: Comparison) -> str:
    """The comparison as JSON: {"a", "b", "differs", "cells", "sheets"}.

    The last two hold {"alike", "differ", "only_a", "only_b", "changes"}.

    A change has the keys of COLUMNS; what a tree lacks, or is not known, is null.
    """
    content = {"a": comparison.a, "b": comparison.b, "differs": comparison.differs}
    content |= {"cells": _content(comparison.cells), "sheets": _content(comparison.sheets)}
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def write_changes(comparison: Comparison, path: str | os.PathLike) -> None:
    """Write every change as a line of CSV; a cell or file that is in one folder alone is one line."""
    write_csv(path, COLUMNS, (row.values() for part in (comparison.cells, comparison.sheets) for row in _rows(part)))


def _content(found: Found) -> dict:
    return {
        "alike": found.both - len(found.changes),
        "differ": len(found.changes),
        "only_a": found.only_a,
        "only_b": found.only_b,
        "changes": [_row(change) for changes in found.changes.values() for change in changes],
    }


def _rows(found: Found) -> Iterator[dict]:
    yield from (_row(Change(name, ONLY, "all", "there", None)) for name in found.only_a)
    yield from (_row(Change(name, ONLY, "all", None, "there")) for name in found.only_b)
    yield from (_row(change) for changes in found.changes.values() for change in changes)


def _row(change: Change) -> dict:
    return dict(zip(COLUMNS, _VALUES(change), strict=True))
