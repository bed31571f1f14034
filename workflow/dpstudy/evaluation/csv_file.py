"""CSV files with one spelling: comma, "\\n", floats that read back to the same bits, empty for a missing value."""

import csv
import os
from collections.abc import Iterable, Sequence

from dpstudy.files import atomic


def write_csv(path: str | os.PathLike, header: Sequence[str], rows: Iterable[Iterable]) -> None:
    """Write a header and rows; None becomes an empty field."""
    with atomic(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
