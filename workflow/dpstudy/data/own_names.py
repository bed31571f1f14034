"""Names for a user's own records and subjects that do not depend on any other record.

Which split a record falls into, which of a person's records are kept and which labels of a record, goes by a hash of
its id. Were that its row's number, a deleted row would give another number, and other choices, to all that follow: the
data sets with and without it would differ in thousands of records, where a guarantee is about one. So a record that has
no name of its own is named by a hash of all that is known of it: pixels, labels, subject and groups. Equal records
differ by a count: whichever of c equal ones is deleted, c - 1 remain with the first c - 1 names, and all others keep
theirs.
"""

import hashlib
import json
from collections import Counter
from dataclasses import replace

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.subjects import name_of
from dpstudy.data.reader import Reader, Rows
from dpstudy.data.records import Records

BLOCK_BYTES = 1 << 25  # of images at once, while all rows of a pool are named
_DIGITS = 32  # of a name: 128 bits


class OwnNames:
    """A reader that names unnamed records of `reader` by their content, and spells each subject's name in one way.

    Whoever asks for rows has all images of their pool read for it, a block at a time: each shard's job, so that all
    shards agree on the names.

    Args:
        numbered: unnamed records keep row numbers, as earlier trainings knew them (spending.Spending.numbered).
    """

    def __init__(self, reader: Reader, numbered: bool = False):
        self.classes, self.multi_label, self.pools = reader.classes, reader.multi_label, reader.pools
        self._reader, self._numbered = reader, numbered
        self._rows: dict[str, Rows] = {}

    def rows(self, pool: str) -> Rows:
        """See `Reader`."""
        if pool not in self._rows:
            rows = self._reader.rows(pool)
            ids = rows.ids if rows.named or self._numbered else self._names(pool, len(rows))
            self._rows[pool] = replace(rows, ids=ids, subjects=_persons(rows.subjects))
        return self._rows[pool]

    def read(self, pool: str, indices: np.ndarray) -> Records:
        """See `Reader`.

        Raises:
            StudyError: an image has changed since the rows were named.
        """
        rows, records = self.rows(pool), self._reader.read(pool, indices)
        if not (rows.named or self._numbered):
            ids = rows.ids[indices]
            for index, name, digest in zip(indices, ids, _digests(records), strict=True):
                if name[len(pool) + 1 :][:_DIGITS] != digest:
                    raise StudyError(f"row {index} of the pool {pool!r} has changed while it was read; start again")
            records = replace(records, ids=ids)
        return replace(records, subjects=_persons(records.subjects))

    def _names(self, pool: str, count: int) -> np.ndarray:
        """(count,) strings such as "train-53ac09...", the second of equal records "train-53ac09...-1"."""
        seen: Counter[str] = Counter()
        names = np.empty(count, dtype=object)
        size, start = 1, 0  # the first row tells how large an image is
        while start < count:
            records = self._reader.read(pool, np.arange(start, min(start + size, count)))
            for row, digest in enumerate(_digests(records), start=start):
                copies = seen[digest]
                names[row] = f"{pool}-{digest}-{copies}" if copies else f"{pool}-{digest}"
                seen[digest] += 1
            start += len(records)
            size = max(1, BLOCK_BYTES // max(1, _images(records)[0].nbytes))
        return names


def _persons(subjects: np.ndarray | None) -> np.ndarray | None:
    return None if subjects is None else np.array([name_of(subject) for subject in subjects], dtype=object)


def _images(records: Records) -> np.ndarray:
    if records.images is None:
        raise ValueError("records without images and without names of their own cannot be told apart")
    return records.images


def _digests(records: Records) -> list[str]:
    """A hash of all that each record holds."""
    digests = []
    for row, image in enumerate(_images(records)):
        subject = None if records.subjects is None else name_of(records.subjects[row])
        groups = {name: values[row] for name, values in records.groups.items()}
        facts = json.dumps([image.shape, records.labels[row].tolist(), subject, groups], sort_keys=True)
        digest = hashlib.sha256(facts.encode())
        digest.update(image.tobytes())
        digests.append(digest.hexdigest()[:_DIGITS])
    return digests
