"""A CSV, parquet or JSON-lines table as columns of strings, with errors that name the row and the line."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpstudy.core.errors import StudyError
from dpstudy.core.files import column_values, read_table
from dpstudy.core.subjects import EXACT, check_named, name_of, plain
from dpstudy.core.suggest import suggestion
from dpstudy.core.text import composed, heading
from dpstudy.data.source import read_text

_SAVE = "save the sheet as CSV (in Excel: 'CSV UTF-8')"
_KINDS = (  # what files that are no CSV begin with
    (b"PK\x03\x04", f"it is a workbook (Excel, OpenDocument) or a zip archive; {_SAVE}, or unpack it"),
    (b"\xd0\xcf\x11\xe0", f"it is an Excel workbook; {_SAVE}"),
    (
        (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"),
        "it is compressed; unpack it, and name the file that comes out",
    ),
    ((b"\xff\xfe", b"\xfe\xff"), f"it is UTF-16 text; {_SAVE}"),
    (b"ARROW1", "it is a feather file; write the table with to_parquet, under a name that ends in .parquet"),
    (b"\x89HDF", "it is an HDF5 file; write the table with to_csv or to_parquet"),
    (b"PAR1", "it is a parquet file; give it a name that ends in .parquet"),
)
WRITE_ANEW = "write it anew (of pandas: to_parquet)"
_EXCELS_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_BETWEEN = "|;,/"  # what may stand between findings
_HALF, _SINGLE = 2**11, 2**24  # of floats of 16 and of 32 bits
_MARKS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class TextTable:
    """Columns of strings (empty where a value is missing), rows counted from 0.

    Attributes:
        columns: name, as text.heading has it -> (n,) strings; those without a name are left out.
        lines: the line of each row in a CSV file, None for parquet.
        exact: of columns of short floats, below which whole numbers are as they were before something made them floats.
    """

    path: Path
    columns: dict[str, np.ndarray]
    rows: int
    lines: list[int] | None = None
    exact: Mapping[str, int] = field(default_factory=dict)

    def row(self, row: int) -> str:
        """The name of `row` in error messages."""
        return f"row {row}" + (f" (line {self.lines[row]})" if self.lines else "")

    def where(self, row: int) -> str:
        """The name of `row` in error messages, with the file."""
        return f"{self.path}: {self.row(row)}"

    def column(self, name: str, empty: bool = False, key: str = "") -> np.ndarray:
        """The (n,) strings of one column.

        Args:
            empty: fields may be.
            key: of the config that names it, for the message.

        Raises:
            StudyError: there is no such column, or a value is missing (unless fields may be `empty`).
        """
        if heading(name) not in self.columns:
            close = suggestion(name, self.columns)
            asked = f", as `{key}` says" if key else ""
            raise StudyError(f"{self.path}: no column {name!r}{asked}{close}; there are {', '.join(self.columns)}")
        values = self.columns[heading(name)]
        missing: list[int] = [] if empty else np.flatnonzero(values == "").tolist()
        if len(missing):
            raise StudyError(
                f"{self.where(missing[0])}: no value in the column {name!r}{further(len(missing))}; fill it in, or "
                "leave the row out"
            )
        return values

    def subjects(self, name: str) -> np.ndarray:
        """(n,) the subjects' names in one column (subjects.name_of).

        Raises:
            StudyError: there is no such column, or a row names nobody (subjects.check_named).
        """
        values = self.column(name, empty=True)
        check_named(values, self.where, name, self.exact.get(heading(name), EXACT))
        return np.array([name_of(value) for value in values], dtype=object)

    def class_indices(self, name: str, classes: list[str]) -> np.ndarray:
        """(n,) int32 class indices of the class names in the column `name`; 1.0 is the class 1.

        Raises:
            StudyError: as for `column`, or a value is not one of the classes.
        """
        values = self.column(name)
        places = _places(classes, values)
        self._refuse_unknown(name, classes, [row for row, value in enumerate(values) if places[value] is None])
        return np.array([places[value] for value in values], np.int32)

    def findings(self, name: str, classes: list[str], separator: str, others: Collection[str]) -> np.ndarray:
        """(n, m) int8 of 0 and 1: which of the m `classes` each field of a column lists.

        Names are separated by `separator`. An empty field lists none; `others` are words that are no class.

        Raises:
            StudyError: there is no such column, or a field has a word that is neither.
        """
        known = [*classes, *others]
        rows = [{word.strip() for word in field.split(separator)} - {""} for field in self.column(name, empty=True)]
        places = _places(known, set().union(*rows))
        unknown = {word for word, place in places.items() if place is None}
        self._refuse_unknown(name, known, [row for row, words in enumerate(rows) if words & unknown], separator)
        marks = np.zeros((self.rows, len(known)), np.int8)
        for row, words in enumerate(rows):
            marks[row, [place for word in words if (place := places[word]) is not None]] = 1
        return marks[:, : len(classes)]

    def _refuse_unknown(self, name: str, known: list[str], rows: list[int], separator: str = "") -> None:
        """Say which word in a column is none of the `known`, where there are such `rows`."""
        if not rows:
            return
        fields = self.columns[heading(name)][rows]
        words = [word.strip() for word in fields[0].split(separator)] if separator else [fields[0]]
        value = next(word for word in words if word and _places(known, [word])[word] is None)
        advice = suggestion(value, known)
        if separator and not advice:
            advice = "; if it is no finding, name it in `no_label`"
        for mark in "" if separator else _BETWEEN:
            parts = {word.strip() for field in fields if mark in field for word in field.split(mark)}
            if any(place is not None for place in _places(known, parts).values()):
                advice = f"; if a field may list several, give `separator: {mark!r}`"
        raise StudyError(
            f"{self.where(rows[0])}: unknown class {value!r} in the column {name!r}{further(len(rows))}{advice}; the "
            f"classes are {', '.join(known)}"
        )


def _places(classes: list[str], values: Iterable[str]) -> dict[str, int | None]:
    """Each value's place in `classes`, as a field of a table names them; None where it is none.

    >>> _places(["0", "1"], ["1", "1.0", "2"])
    {'1': 1, '1.0': 1, '2': None}
    """
    index = {composed(name): place for place, name in enumerate(classes)}
    return {value: index.get(composed(value), index.get(plain(value))) for value in dict.fromkeys(values)}


def further(rows: int) -> str:
    """The part of an error message about the first of `rows` rows that says there are more.

    >>> further(1), further(3)
    ('', ' (the first of 3 rows)')
    """
    return f" (the first of {rows} rows)" if rows > 1 else ""


def read_text_table(path: Path, columns: list[str] | None = None) -> TextTable:
    """The table in a file.

    It is parquet if its name ends so (then only `columns`, if given), lines of JSON if it ends in .jsonl, else CSV
    (UTF-8, commas, a header).

    Lines without any value count for nothing, nor do columns without a name: spreadsheets leave both.

    Raises:
        StudyError: it is missing, damaged, empty, of another format, or a line has another number of values than the
            header.
    """
    kinds = {".parquet": lambda: _read_parquet(path, columns), ".jsonl": lambda: _read_lines(path)}
    table = kinds.get(path.suffix.lower(), lambda: _read_csv(path))()
    if not table.rows:
        raise StudyError(f"{path}: no rows")
    return table


def _read_csv(path: Path) -> TextTable:
    _refuse_other_kinds(path)
    text = read_text(path)
    if excels := _EXCELS_LINE.fullmatch(text.partition("\n")[0]):
        commas = "" if excels[1] == "," else ", and save the table with commas between the values"
        raise StudyError(f"{path}: its first line is Excel's {excels[0].strip()!r}; delete that line{commas}")
    lines = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    rows, numbers = [], []
    try:
        header = [heading(name) for name in next(lines, [])]
        if not any(header):
            raise StudyError(f"{path}: is empty, or begins with an empty line; its first line names the columns")
        if twice := [name for name, times in Counter(header).items() if times > 1 and name]:
            raise StudyError(f"{path}: its header names the column {twice[0]!r} twice; give each a name of its own")
        mark = next((mark for mark in _MARKS if mark in header[0]), None)
        if len(header) == 1 and mark:
            raise StudyError(
                f"{path}: its header has no comma but {mark!r}; save it with commas between the values, not "
                f"{_MARKS[mark]}, and numbers with points"
            )
        for values in lines:
            if not any(value.strip() for value in values):
                continue
            if len(values) != len(header):
                advice = "; put values with commas in quotes" if len(values) > len(header) else ""
                if sum(map(bool, header)) == 1:
                    advice = f"; is {header[0]!r} a title? The first line names the columns"
                raise StudyError(
                    f"{path}: line {lines.line_num} has {len(values)} values for {len(header)} columns{advice}"
                )
            rows.append(values)
            numbers.append(lines.line_num)
    except csv.Error as error:
        raise StudyError(f"{path}: line {lines.line_num} is not CSV ({error})") from None
    columns = {
        name: np.array([row[place].strip() for row in rows], dtype=object) for place, name in enumerate(header) if name
    }
    return TextTable(path, columns, len(rows), numbers)


def _refuse_other_kinds(path: Path) -> None:
    try:
        with open(path, "rb") as file:
            start = file.read(64)
    except OSError:
        return  # the code that reads the file reports errors
    for first, what in _KINDS:
        if start.startswith(first):
            raise StudyError(f"{path}: {what}; a table is CSV (UTF-8, commas, a header) or parquet")
    if b"\0" in start:
        raise StudyError(f"{path}: it is no text of UTF-8, but UTF-16 or another format; {_SAVE}")
    if start.lstrip(b"\xef\xbb\xbf \r\n").lower().startswith((b"<html", b"<!doctype", b"<?xml", b"<table")):
        raise StudyError(f"{path}: it is an HTML or XML page, whatever it is called; {_SAVE}")
    if start.lstrip().startswith((b"{", b"[")):
        raise StudyError(
            f"{path}: it is JSON; write the table with to_csv or to_parquet, or a line a row in a file named *.jsonl"
        )


def _read_parquet(path: Path, columns: list[str] | None) -> TextTable:
    if path.is_dir():
        raise StudyError(f"{path}: it is a folder; a table is one file, so write it without partitions")
    table = read_table(path, columns, remedy=WRITE_ANEW)
    texts = {
        heading(name): np.array([cell_text(value) for value in column_values(path, table, name)], dtype=object)
        for name in table.column_names
    }
    if len(texts) < table.num_columns:
        raise StudyError(f"{path}: two of its columns have one name but for spaces; rename one")
    exact = {heading(column.name): most for column in table.schema if (most := _exact(column.type))}
    return TextTable(path, texts, table.num_rows, exact=exact)


def _exact(kind: pa.DataType) -> int | None:
    """Up to which a type of short floats has all whole numbers; None of other types."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return _HALF if pa.types.is_float16(kind) else _SINGLE if pa.types.is_float32(kind) else None


def _read_lines(path: Path) -> TextTable:
    """An object of JSON a line; fields that are lists or objects are no columns."""
    rows, numbers = [], []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise StudyError(f'{path}: line {number} is no object of JSON, such as {{"file_name": "a.png"}}')
        rows.append({heading(name): value for name, value in row.items() if not isinstance(value, list | dict)})
        numbers.append(number)
    known = dict.fromkeys(name for row in rows for name in row if name)
    columns = {name: np.array([cell_text(row.get(name)) for row in rows], dtype=object) for name in known}
    return TextTable(path, columns, len(rows), numbers)


def cell_text(value: object) -> str:
    """A value of a typed table (numbers, booleans) as a CSV file would have it; "" where it is missing."""
    if value is None or value != value:  # NaN is how pandas writes a missing value
        return ""
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    return str(int(value)) if isinstance(value, bool) else str(value).strip()
