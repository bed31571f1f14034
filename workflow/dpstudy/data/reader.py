"""The interface of data set readers: pools, the ids of their rows, and rows on demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from dpstudy.core.subjects import check_named
from dpstudy.data.records import Records

IMAGE_FILES = ("size", "channels", "resize", "frame", "max_pixels", "window", "unreadable")  # keys of readers of such
EXTRA = "extra"  # the pool of records that only train may have (data/extra.py)


@dataclass(frozen=True)
class Declared:
    """The properties that a reader declares as `READER`; `make schemas` copies them to the config's schema.

    Attributes:
        keys: that it takes besides those of every data set.
        shape: [height, width, channels] where a config gives no others; None: the files know.
        own: people bring their own records with it.
        numbered: rows may have no names but numbers.
        drawn: a program draws its images, and saw none.
        crops: images are cropped, and not stretched, where the option `resize` is absent.
    """

    keys: tuple[str, ...] = ()
    shape: tuple[int | None, int | None, int | None] = (None, None, None)
    own: bool = False
    numbered: bool = False
    drawn: bool = False
    crops: bool = False


@dataclass(frozen=True)
class Rows:
    """The rows of one pool: ids and subjects, but no images.

    Attributes:
        ids: (n,) strings, unique over all pools of the data set.
        subjects: (n,) strings naming the subject of each row, or None.
        files: the n image files, where a user's own table or folder has one for each row; else None.
        named: whether the ids are the rows' own, such as paths; False where they are numbers (`numbered`).

    Raises:
        StudyError: a row names nobody as its subject (subjects.check_named).
    """

    ids: np.ndarray
    subjects: np.ndarray | None = None
    files: list[Path] | None = None
    named: bool = True

    def __post_init__(self):
        if self.subjects is not None:
            check_named(self.subjects, lambda row: f"the record {self.ids[row]!r}")

    @classmethod
    def numbered(cls, prefix: str, count: int, subjects: np.ndarray | None = None) -> Rows:
        """Rows named by their position alone, with ids such as "train-00017".

        Published benchmarks keep these: everybody counts their records so. A user's own records are named anew by what
        they hold (data/own_names.py), since a row that is deleted gives another number to all that follow.
        """
        ids = np.array([f"{prefix}-{row:05d}" for row in range(count)], dtype=object)
        return cls(ids, subjects, named=False)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def known_subjects(self) -> np.ndarray:
        """(n,) `subjects`, for callers that know there are some.

        Raises:
            ValueError: they are not.
        """
        if self.subjects is None:
            raise ValueError("no subject is known of these rows")
        return self.subjects


class Numbered(ABC):
    """The base of readers whose rows have one label each and no names but numbers; they define `images`.

    Args:
        labels: pool -> (n,) class indices.
    """

    multi_label = False

    def __init__(self, classes: list[str], labels: dict[str, np.ndarray]):
        self.classes, self.pools, self._labels = classes, tuple(labels), labels

    def rows(self, pool: str) -> Rows:
        """See `Reader`."""
        return Rows.numbered(pool, len(self._labels[pool]))

    def read(self, pool: str, indices: np.ndarray) -> Records:
        """See `Reader`."""
        return Records(self.rows(pool).ids[indices], self.images(pool, indices), self._labels[pool][indices])

    @abstractmethod
    def images(self, pool: str, indices: np.ndarray) -> np.ndarray | None:
        """The images of `pool` at `indices`: (n, H, W, C) uint8."""


class Reader(Protocol):
    """One opened data set. Reader modules define `open(options: dict, data_root: Path) -> Reader`.

    Those of people's own records have `known(pool) -> Records` besides: all rows, without images (data/stand_in.py).

    Attributes:
        classes: the label names, in label order.
        multi_label: whether labels are 0/1 vectors rather than one class index.
        pools: ("train", "test") where the source comes split, else ("all",); with EXTRA where it was enlarged.
    """

    classes: list[str]
    multi_label: bool

    @property
    def pools(self) -> tuple[str, ...]: ...

    def rows(self, pool: str) -> Rows:
        """The ids (and subjects) of `pool`, in the source's order; decodes no image."""
        ...

    def read(self, pool: str, indices: np.ndarray) -> Records:
        """The rows of `pool` at `indices`, in that order; decodes only the images asked for."""
        ...
