"""The papers' printed numbers, from workflow/published/results.csv."""

import csv
import functools
import math
import os
from dataclasses import dataclass
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.schema.reading import check, read_yaml

RESULTS = Path(__file__).parents[2] / "published" / "results.csv"
ARCHITECTURES, HYPERPARAMETERS = (RESULTS.with_name(f"{name}.csv") for name in ("architectures", "hyperparameters"))
TIMINGS, DISTANCES, LEAKS, GROUPS = (
    RESULTS.with_name(f"{name}.csv") for name in ("timings", "distances", "leaks", "groups")
)
ROLES = RESULTS.with_name("roles.yaml")
CLAIMS = RESULTS.with_name("claims")
_KEYS = (
    *("paper", "table", "dataset", "pretraining", "model", "method", "epochs", "delta", "metric", "statistic"),
    *("source", "split", "note"),
)
_COPIED = ("statistic", "note", "source", "paper", "table", "pretraining", "method", "epochs")
_AT_MOST_20 = "le20"  # mehta2023 prints such cells as a bound, without a number


@dataclass(frozen=True)
class Published:
    """A printed number: `text` as printed, in percent, `value` as a number, and `std` or None.

    `text` is empty and `value` None where the paper prints only an upper bound.
    """

    text: str
    value: float | None
    std: float | None
    statistic: str
    note: str
    source: str
    paper: str
    table: str
    pretraining: str
    method: str
    epochs: str

    @property
    def at_most(self) -> float | None:
        """The upper bound that is printed instead of a value, or None."""
        return 20.0 if self.note == _AT_MOST_20 else None


def combine(spec: dict, dataset: str, *parts: dict) -> dict[str, str] | None:
    """The filter of the published number beside a cell, or None where the paper has no counterpart.

    Args:
        spec: of a table or figure: its `published` (for all cells) and `counterparts` (by our data set).
        dataset: the cell's data set. Where there are counterparts, it must have one.
        parts: what else names the cell (its group, its row); each must have a `published`. Later parts win.
    """
    counterpart = [spec["counterparts"].get(dataset)] if "counterparts" in spec else []
    filters = [*counterpart, spec.get("published", {}), *(part.get("published") for part in parts)]
    if None in filters:
        return None
    return {key: value for filter_ in filters for key, value in filter_.items()} or None


def lookup(where: dict[str, str], epsilon: str) -> Published | None:
    """The published number whose columns equal `where`, at `epsilon`; None where the paper has none at this epsilon.

    Raises:
        StudyError: an unknown column, a value that no row has, or several rows that match.
    """
    matches = _find(where, epsilon)
    if len(matches) > 1:
        differing = [key for key in _KEYS if len({row[key] for _, row in matches}) > 1]
        lines = ", ".join(str(line) for line, _ in matches)
        raise StudyError(
            f"published: lines {lines} of {RESULTS.name} all match {where} at epsilon {epsilon}; "
            f"tell them apart by {', '.join(differing) or 'nothing: they are equal'}"
        )
    return _published(matches[0][1]) if matches else None


def find_all(where: dict[str, str], epsilon: str) -> list[Published]:
    """Every published number whose columns equal `where`, at `epsilon`, in the file's order. Raises: as `lookup`."""
    return [_published(row) for _, row in _find(where, epsilon)]


def all_lines() -> dict[int, dict[str, str]]:
    """Every printed number by its line number in the file."""
    return dict(_rows())


def along_epsilon(where: dict[str, str]) -> list[tuple[float, Published]]:
    """(epsilon, published number) of every number at a finite epsilon whose columns equal `where`, ascending.

    Raises: as `lookup`.
    """
    rows = [row for _, row in _matching(where) if row["epsilon"] and row["value"]]
    pairs = [(float(row["epsilon"]), _published(row)) for row in rows]
    return sorted((pair for pair in pairs if math.isfinite(pair[0])), key=lambda pair: pair[0])


def published_rows(path: str | os.PathLike, paper: str) -> list[dict[str, str]]:
    """The rows of a published CSV file that belong to a paper.

    Raises:
        StudyError: the file is missing.
    """
    return [row for _, row in numbered_rows(path) if row["paper"] == paper]


def numbered_rows(path: str | os.PathLike) -> list[tuple[int, dict[str, str]]]:
    """Each row of a published CSV file with its line number there.

    Raises:
        StudyError: the file is missing.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            return [(reader.line_num, row) for row in reader]
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file; it belongs to the repository, restore it") from None


@functools.cache
def claims_of(paper: str) -> dict[str, dict]:
    """The claims of a paper by id, in its order, as workflow/published/claims/ has them.

    Raises:
        StudyError: the file is missing, or an entry is not as it must be.
    """
    path = CLAIMS / f"{paper}.yaml"
    claims = read_yaml(path)
    check(claims, "claims", str(path))
    return claims


def _find(where: dict[str, str], epsilon: str) -> list[tuple[int, dict[str, str]]]:
    rows = _matching(where)
    return [(line, row) for line, row in rows if row["epsilon"] and float(row["epsilon"]) == float(epsilon)]


def _matching(where: dict[str, str]) -> list[tuple[int, dict[str, str]]]:
    for key in where:
        if key not in _KEYS:
            raise StudyError(f"published: unknown key {key!r}; known are {', '.join(_KEYS)}")
    rows = _rows()
    for key, value in where.items():
        narrowed = [(line, row) for line, row in rows if row[key] == str(value)]
        if not narrowed:
            values = sorted({row[key] for _, row in rows})
            raise StudyError(
                f"published: no row of {RESULTS.name} has {key} = {str(value)!r} with the keys before it; "
                f"there are {', '.join(map(repr, values))}"
            )
        rows = narrowed
    return rows


def _published(row: dict[str, str]) -> Published:
    value, std = (float(row[key]) if row[key] else None for key in ("value", "std"))
    return Published(row["value"], value, std, **{key: row[key] for key in _COPIED})


@functools.cache
def _rows() -> list[tuple[int, dict[str, str]]]:
    return numbered_rows(RESULTS)
