"""Rows in memory: images, labels and what is known of each record."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpstudy.core.errors import StudyError


@dataclass(frozen=True)
class Records:
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

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def multi_label(self) -> bool:
        """Whether a record may carry several labels."""
        return self.labels.ndim == 2

    def take(self, index: np.ndarray) -> Records:
        """The rows that `index` (integers, or a boolean mask over the rows) selects, in its order."""
        return Records(
            ids=self.ids[index],
            images=None if self.images is None else self.images[index],
            labels=self.labels[index],
            subjects=None if self.subjects is None else self.subjects[index],
            groups={name: values[index] for name, values in self.groups.items()},
            counts=None if self.counts is None else self.counts[index],
        )


def concatenate(batches: list[Records]) -> Records:
    """The rows of all `batches` (at least one, with the same columns), in order."""
    first = batches[0]
    if len(batches) == 1:
        return first  # images twice in memory would be one time too many
    return Records(
        ids=np.concatenate([batch.ids for batch in batches]),
        images=None if first.images is None else np.concatenate([batch.images for batch in batches]),
        labels=np.concatenate([batch.labels for batch in batches]),
        subjects=None if first.subjects is None else np.concatenate([batch.subjects for batch in batches]),
        groups={name: np.concatenate([batch.groups[name] for batch in batches]) for name in first.groups},
        counts=None if first.counts is None else np.concatenate([batch.counts for batch in batches]),
    )
