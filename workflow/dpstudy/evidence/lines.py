"""Reading the CSV files of recorded evidence, which `evaluation.csv_file` writes."""

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.csv_file import unguarded


def read_lines(path: str | os.PathLike, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(line number, fields) of each line of a file; nothing where there is no file.

    Raises:
        StudyError: it has other columns, or a line has more or fewer fields.
    """
    if not Path(path).exists():
        return
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != tuple(columns):
            raise StudyError(f"{path}: its columns are not {', '.join(columns)}; restore it from the repository")
        for number, line in enumerate(reader, start=2):
            if None in line or None in line.values():
                raise damaged(path, number, "it has too many fields, or too few")
            yield number, {key: unguarded(value) for key, value in line.items()}


def damaged(path: str | os.PathLike, number: int, why: object) -> StudyError:
    """The error for a line that cannot be read."""
    return StudyError(f"{path}: line {number} is damaged ({why}); mend it, or record its study again")
