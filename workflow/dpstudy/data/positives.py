"""A maximum number of positive labels per record: excess labels are refused, or dropped where a study says so."""

import hashlib
from dataclasses import replace

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.records import Records

SALT = "dpstudy positives"


def at_most(records: Records, most: int) -> Records:
    """The records with excess labels dropped; which ones are kept depends on the record's id alone.

    Labels that are one class a record are left as they are.
    """
    if not records.multi_label:
        return records
    labels = records.labels.copy()
    for row in np.flatnonzero(labels.sum(1) > most):
        positive = np.flatnonzero(labels[row])
        labels[row, sorted(positive.tolist(), key=lambda label: _place(records.ids[row], label))[most:]] = 0
    return replace(records, labels=labels)


def refuse_more(records: Records, most: int) -> None:
    """Refuse records with more than `most` positive labels, since their contribution would exceed its bound.

    Raises:
        StudyError: naming the first.
    """
    if not records.multi_label:
        return
    over = np.flatnonzero(records.labels.sum(1) > most)
    if len(over):
        row = over[0]
        raise StudyError(
            f"the record {records.ids[row]!r} has {int(records.labels[row].sum())} positive labels, but `positives` "
            f"declares at most {most}: raise it, or write `beyond: truncate`"
        )


def _place(name: str, label: int) -> bytes:
    return hashlib.sha256(f"{SALT}\0{name}\0{label}".encode()).digest()
