"""Additional training records from a second source; they join no other split.

tramer2021 (section 5.1, C.7) adds pseudo-labelled images to CIFAR-10 in this way. Every record counts as private. Where
the second source depends on the first (labels from a model that was trained on it), one record of the first has a hand
in many of the second, which no ledger's events cover: the config says so in the data set's `not_accounted`.
"""

import functools

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.reader import EXTRA, Reader, Rows
from dpstudy.data.records import Records
from dpstudy.data.splits import lowest

_SALT = "dpstudy extra"


def enlarge(own: Reader, extra: Reader, records: int | None) -> Reader:
    """`own` with an additional pool EXTRA: the rows of `extra`'s pool "all", or else "train", or `records` of them.

    Raises:
        StudyError: the two differ in classes or in the kind of label; later, `extra` has fewer rows than `records`.
    """
    if extra.classes != own.classes or extra.multi_label != own.multi_label:
        raise StudyError(
            f"extra: its classes are {', '.join(extra.classes)}, those of the data set {', '.join(own.classes)}; they "
            "must be the same, in the same order"
        )
    return _Enlarged(own, extra, records)


class _Enlarged:
    def __init__(self, own: Reader, extra: Reader, records: int | None):
        self.classes, self.multi_label = own.classes, own.multi_label
        self.pools = (*own.pools, EXTRA)
        self._own, self._extra = own, extra
        self._pool = "all" if "all" in extra.pools else "train"
        self._records = records

    @functools.cached_property
    def _places(self) -> np.ndarray:
        """Which rows of the pool are taken."""
        ids = self._extra.rows(self._pool).ids
        return np.arange(len(ids)) if self._records is None else lowest(ids, self._records, _SALT, "extra")

    def rows(self, pool: str) -> Rows:
        if pool != EXTRA:
            return self._own.rows(pool)
        ids = self._extra.rows(self._pool).ids[self._places]
        return Rows(np.array([f"{EXTRA}-{name}" for name in ids], dtype=object))

    def read(self, pool: str, indices: np.ndarray) -> Records:
        if pool != EXTRA:
            return self._own.read(pool, indices)
        records = self._extra.read(self._pool, self._places[indices])
        ours, theirs = _kind(self._own.read(self._own.pools[0], np.zeros(1, np.int64))), _kind(records)
        if ours != theirs:
            raise StudyError(f"extra: its records have {theirs}, those of the data set {ours}; they must be the same")
        return Records(self.rows(EXTRA).ids[indices], records.images, records.labels)


def _kind(records: Records) -> str:
    images = "no images" if records.images is None else f"images {records.images.shape[1:]}"
    columns = ["subject"] * (records.subjects is not None) + list(records.groups)
    return f"{images} and {', '.join(columns) or 'no'} columns beside the label"
