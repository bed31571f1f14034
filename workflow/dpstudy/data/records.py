"""Records in memory: images, labels, and what else is known of each record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeVar

import numpy as np

from dpstudy.core.errors import StudyError


class Columns:
    """The common base of tables: row i of each array, also of arrays in mappings, belongs to one thing."""

    def take(self, index: np.ndarray) -> Self:
        """The rows selected by `index` (integers, or a boolean mask), in its order."""
        return _each_column([self], lambda columns: columns[0][index])


class RecordTable(Columns):
    """The common base of record tables, whose rows are records."""

    ids: np.ndarray
    labels: np.ndarray
    subjects: np.ndarray | None
    groups: dict[str, np.ndarray]
    counts: np.ndarray | None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def multi_label(self) -> bool:
        """Whether a record may have several labels."""
        return self.labels.ndim == 2


Table = TypeVar("Table", bound=Columns)
OfRecords = TypeVar("OfRecords", bound=RecordTable)


def concatenate(tables: Sequence[Table]) -> Table:
    """The rows of all tables (at least one, with the same columns), in order."""
    if len(tables) == 1:
        return tables[0]  # no concatenation, which would hold all images in memory twice
    return _each_column(tables, np.concatenate)


def only(table: OfRecords, ids: set[str]) -> OfRecords:
    """The rows whose ids are in `ids`."""
    mask = np.fromiter((name in ids for name in table.ids), bool, len(table))
    return table if mask.all() else table.take(mask)


def _each_column(tables: Sequence[Table], made: Callable[[list[np.ndarray]], np.ndarray]) -> Table:
    """A table of what is made of each column of these; what is no column is as in the first."""
    columns: dict[str, Any] = {}
    for one in fields(tables[0]):  # type: ignore[arg-type]
        values = [getattr(table, one.name) for table in tables]
        if isinstance(values[0], np.ndarray):
            columns[one.name] = made(values)
        elif isinstance(values[0], dict):
            columns[one.name] = {name: made([value[name] for value in values]) for name in values[0]}
    return replace(tables[0], **columns)  # type: ignore[type-var]


@dataclass(frozen=True)
class Records(RecordTable):
    """A batch of n rows; row i of every array belongs to the same record.

    Attributes:
        ids: (n,) strings, unique within a data set.
        images: (n, H, W, C) uint8, or None for a data set that brings labels only.
        labels: (n,) int32 class indices, or (n, m) int8 of 0 and 1 for m findings.
        subjects: (n,) strings naming the person (or other unit) behind each record, or None.
        groups: name -> (n,) strings, the subgroups that the evaluation compares.
        counts: (n,) int32, how many records of the split are of the same subject, where that is asked for; or None.

    Raises:
        StudyError: the arrays differ in length, or one has the wrong number of dimensions or type.
    """

    ids: np.ndarray
    images: np.ndarray | None
    labels: np.ndarray
    subjects: np.ndarray | None = None
    groups: dict[str, np.ndarray] = field(default_factory=dict)
    counts: np.ndarray | None = None

    def __post_init__(self):
        columns = {"images": self.images, "labels": self.labels, "subjects": self.subjects, "counts": self.counts}
        columns |= self.groups
        for name, column in columns.items():
            if column is not None and len(column) != len(self.ids):
                raise StudyError(f"{len(self.ids)} ids but {len(column)} {name}")
        if self.images is not None and (self.images.ndim != 4 or self.images.dtype != np.uint8):
            raise StudyError(f"images must be (n, H, W, C) uint8, not {self.images.shape} {self.images.dtype}")
        if self.labels.dtype != (np.int8 if self.labels.ndim == 2 else np.int32) or self.labels.ndim > 2:
            raise StudyError(f"labels must be (n,) int32 or (n, m) int8, not {self.labels.shape} {self.labels.dtype}")
