"""Comparison of two whole results folders."""

import os
from dataclasses import dataclass
from pathlib import Path

from dpstudy.comparison.cell import cell_changes
from dpstudy.comparison.change import Change
from dpstudy.comparison.sheets import sheet_changes
from dpstudy.comparison.tree import cells_of, read_cell, sheets_of
from dpstudy.core.errors import StudyError


@dataclass(frozen=True)
class Found:
    """The comparison of the cells, or of the CSV files, of two results folders.

    Attributes:
        only_a, only_b: names that one tree has.
        both: how many names both have.
        changes: name -> its changes, of names in both that differ.
    """

    only_a: list[str]
    only_b: list[str]
    both: int
    changes: dict[str, list[Change]]

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        return bool(self.only_a or self.only_b or self.changes)


@dataclass(frozen=True)
class Comparison:
    """Two results folders, with the differences between their cells and between the CSV files of tables and figures."""

    a: str
    b: str
    cells: Found
    sheets: Found

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        return self.cells.differs or self.sheets.differs


def compare(a: str | os.PathLike, b: str | os.PathLike) -> Comparison:
    """Compare two results folders, one cell in memory at a time.

    Raises:
        StudyError: a tree is none, is half-written or damaged, or may not be read.
    """
    try:
        cells = _found(cells_of(a), cells_of(b), lambda name: cell_changes(read_cell(a, name), read_cell(b, name)))
        sheets = _found(sheets_of(a), sheets_of(b), lambda name: sheet_changes(name, Path(a) / name, Path(b) / name))
    except OSError as error:
        raise StudyError(f"{error.filename}: cannot be read ({error.strerror})") from None
    return Comparison(os.fspath(a), os.fspath(b), cells, sheets)


def _found(a: list[str], b: list[str], changes_of) -> Found:
    in_a, in_b = set(a), set(b)
    both = [name for name in a if name in in_b]
    differing = {name: changes for name in both if (changes := list(changes_of(name)))}
    return Found(
        [name for name in a if name not in in_b], [name for name in b if name not in in_a], len(both), differing
    )
