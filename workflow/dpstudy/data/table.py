"""A CSV or parquet table as columns of strings, with errors that name the row and the line."""

import csv
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import column_values, read_table
from dpstudy.core.subjects import check_named
from dpstudy.core.suggest import suggestion
from dpstudy.data.source import read_text


@dataclass(frozen=True)
class TextTable:
    """Columns of strings (empty where a value is missing), rows counted from 0.

    Attributes:
        columns: name -> (n,) strings.
        lines: the line of each row in a CSV file, None for parquet.
    """

    path: Path
    columns: dict[str, np.ndarray]
    rows: int
    lines: list[int] | None = None

    def row(self, row: int) -> str:
        """How an error message names `row`."""
        return f"row {row}" + (f" (line {self.lines[row]})" if self.lines else "")

    def where(self, row: int) -> str:
        """The same with the file in front."""
        return f"{self.path}: {self.row(row)}"

    def column(self, name: str, empty: bool = False) -> np.ndarray:
        """The (n,) strings of one column.

        Raises:
            StudyError: there is no such column, or a value is missing (unless fields may be `empty`).
        """
        if name not in self.columns:
            close = suggestion(name, self.columns)
            raise StudyError(f"{self.path}: no column {name!r}{close}; there are {', '.join(self.columns)}")
        values = self.columns[name]
        missing: list[int] = [] if empty else np.flatnonzero(values == "").tolist()
        if len(missing):
            raise StudyError(
                f"{self.where(missing[0])}: no value in the column {name!r}{further(len(missing))}; fill it in, or "
                "leave the row out"
            )
        return values

    def subjects(self, name: str) -> np.ndarray:
        """The (n,) names of persons in one column.

        Raises:
            StudyError: there is no such column, or a row names nobody (subjects.check_named).
        """
        values = self.column(name, empty=True)
        check_named(values, self.where, name)
        return values

    def class_indices(self, name: str, classes: list[str]) -> np.ndarray:
        """The (n,) int32 places in `classes` of the class names in the column `name`.

        Raises:
            StudyError: as for `column`, or a value is not one of the classes.
        """
        index = {value: label for label, value in enumerate(classes)}
        values = self.column(name)
        unknown = [row for row, value in enumerate(values) if value not in index]
        if unknown:
            value = values[unknown[0]]
            raise StudyError(
                f"{self.where(unknown[0])}: unknown class {value!r} in the column {name!r}{further(len(unknown))}"
                f"{suggestion(value, classes)}; the classes are {', '.join(classes)}"
            )
        return np.array([index[value] for value in values], np.int32)


def further(rows: int) -> str:
    """How a message about the first of so many rows says that there are more.

    >>> further(1), further(3)
    ('', ' (the first of 3 rows)')
    """
    return f" (the first of {rows} rows)" if rows > 1 else ""


def read_text_table(path: Path, columns: list[str] | None = None) -> TextTable:
    """Read a table: parquet if its name ends so (then only `columns`, if given), else CSV (UTF-8, commas, a header).

    Raises:
        StudyError: it is missing, damaged, empty, or a line has another number of values than the header.
    """
    table = _read_parquet(path, columns) if path.suffix == ".parquet" else _read_csv(path)
    if not table.rows:
        raise StudyError(f"{path}: no rows")
    return table


def _read_csv(path: Path) -> TextTable:
    lines = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    rows, numbers = [], []
    try:
        header = next(lines, [])
        if not header:
            raise StudyError(f"{path}: is empty, or begins with an empty line; its first line names the columns")
        if twice := [name for name, times in Counter(header).items() if times > 1]:
            raise StudyError(f"{path}: its header names the column {twice[0]!r} twice; give each a name of its own")
        mark = next((mark for mark in ";\t|" if mark in header[0]), None)
        if len(header) == 1 and mark:
            raise StudyError(f"{path}: its header has no comma but {mark!r}; save it with commas between the values")
        for values in lines:
            if values and len(values) != len(header):
                raise StudyError(f"{path}: line {lines.line_num} has {len(values)} values for {len(header)} columns")
            if values:
                rows.append(values)
                numbers.append(lines.line_num)
    except csv.Error as error:
        raise StudyError(f"{path}: line {lines.line_num} is not CSV ({error})") from None
    columns = {name: np.array([row[place].strip() for row in rows], dtype=object) for place, name in enumerate(header)}
    return TextTable(path, columns, len(rows), numbers)


def _read_parquet(path: Path, columns: list[str] | None) -> TextTable:
    table = read_table(path, columns)
    texts = {
        name: np.array([_text(value) for value in column_values(path, table, name)], dtype=object)
        for name in table.column_names
    }
    return TextTable(path, texts, table.num_rows)


def _text(value: object) -> str:
    if value is None or value != value:  # NaN is how pandas writes a missing value
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value).strip()
