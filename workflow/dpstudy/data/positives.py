"""At most k positive labels a record, where a study says that the others are dropped rather than refused."""

import hashlib
from dataclasses import replace

import numpy as np

from dpstudy.data.records import Records

SALT = "dpstudy positives"


def at_most(records: Records, most: int) -> Records:
    """The records with at most `most` positive labels each; which ones stay follows from the record's id alone.

    Labels that are one class a record are left as they are.
    """
    if not records.multi_label:
        return records
    labels = records.labels.copy()
    for row in np.flatnonzero(labels.sum(1) > most):
        found = np.flatnonzero(labels[row])
        labels[row, sorted(found, key=lambda label: _place(records.ids[row], label))[most:]] = 0
    return replace(records, labels=labels)


def _place(name: str, label: int) -> bytes:
    return hashlib.sha256(f"{SALT}\0{name}\0{label}".encode()).digest()
