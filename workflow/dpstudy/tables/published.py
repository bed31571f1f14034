"""The numbers that the papers print, from workflow/published/results.csv."""

import csv
import functools
from dataclasses import dataclass
from pathlib import Path

from dpstudy.errors import StudyError

RESULTS = Path(__file__).parents[2] / "published" / "results.csv"
_KEYS = ("paper", "table", "dataset", "pretraining", "model", "method", "epochs", "delta", "metric", "statistic")
_KEYS += ("source", "split", "note")
_AT_MOST_20 = "le20"  # mehta2023 prints such cells as a bound, without a number


@dataclass(frozen=True)
class Published:
    """A printed cell: `text` is the number as printed, in percent, and `value` the same as a number (empty and None
    where the paper prints only an upper bound), `std` or None."""

    text: str
    value: float | None
    std: float | None
    statistic: str
    note: str
    source: str
    paper: str
    table: str

    @property
    def at_most(self) -> float | None:
        """The upper bound that is printed instead of a value, or None."""
        return 20.0 if self.note == _AT_MOST_20 else None


def lookup(where: dict[str, str], epsilon: str) -> Published | None:
    """The published number whose columns equal `where`, at `epsilon`; None where the paper has none at this epsilon.

    Raises:
        StudyError: an unknown column, a value that no row has, or several rows that match.
    """
    for key in where:
        if key not in _KEYS:
            raise StudyError(f"published: unknown key {key!r}; known are {', '.join(_KEYS)}")
    rows = _rows()
    for key, value in where.items():
        narrowed = [(line, row) for line, row in rows if row[key] == str(value)]
        if not narrowed:
            there = sorted({row[key] for _, row in rows})
            raise StudyError(
                f"published: no row of {RESULTS.name} has {key} = {str(value)!r} with the keys before it; "
                f"there are {', '.join(map(repr, there))}"
            )
        rows = narrowed
    found = [(line, row) for line, row in rows if row["epsilon"] and float(row["epsilon"]) == float(epsilon)]
    if len(found) > 1:
        differing = [key for key in _KEYS if len({row[key] for _, row in found}) > 1]
        lines = ", ".join(str(line) for line, _ in found)
        raise StudyError(
            f"published: lines {lines} of {RESULTS.name} all match {where} at epsilon {epsilon}; "
            f"tell them apart by {', '.join(differing) or 'nothing: they are equal'}"
        )
    return _published(found[0][1]) if found else None


def _published(row: dict[str, str]) -> Published:
    return Published(
        text=row["value"],
        value=float(row["value"]) if row["value"] else None,
        std=float(row["std"]) if row["std"] else None,
        **{key: row[key] for key in ("statistic", "note", "source", "paper", "table")},
    )


@functools.cache
def _rows() -> list[tuple[int, dict[str, str]]]:
    """Each row with its line number in the file."""
    try:
        with open(RESULTS, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            return [(reader.line_num, row) for row in reader]
    except FileNotFoundError:
        raise StudyError(f"{RESULTS}: no such file; it belongs to the repository, restore it") from None
