"""Splits by a hash of each record (or subject), so that a record's split depends on nothing but itself.

Adding or removing a record therefore moves no other one, and the order of the source does not matter: the rule costs
no privacy. Fractions are met in expectation, not exactly.
"""

import hashlib

import numpy as np

from dpstudy.data.names import Fractions, split_fractions
from dpstudy.data.reader import Rows
from dpstudy.errors import StudyError

_HASH_BYTES = 8

Parts = list[tuple[str, np.ndarray]]  # (pool, indices of its rows, ascending)


def assign(rows_by_pool: dict[str, Rows], splits: dict, salt: str) -> dict[str, Parts]:
    """Which rows belong to each split: train, validation (if its fraction is not 0), test (unless it is 0), in order.

    A source with the pool "all" needs the fraction `test`. A source with pools train and test keeps its own test
    split, and `test` may only be 0 (no test split at all), unless it names subjects: then, given `test`, the pools are
    merged and split anew. Where subjects are named, all rows of a subject go to one split.

    Args:
        rows_by_pool: the rows of each pool of the source.
        splits: {"test": fraction, "validation": fraction, "left_out": fraction}, of the rows that are split; rows that
            are left out belong to no split.
        salt: goes into the hash, so that splits for different purposes are independent.

    Raises:
        StudyError: `test` is missing or superfluous, the source's pools share a subject, an id stands twice, or a split
            is empty.
    """
    fractions = split_fractions(splits)
    test = fractions.test
    _check_ids(rows_by_pool)
    by_subject = all(rows.subjects is not None for rows in rows_by_pool.values())
    hashed, fixed_test = list(rows_by_pool), None
    if "test" in rows_by_pool:
        if test and not by_subject:
            raise StudyError("splits: this data set has a test split of its own; leave out `test`")
        if not test:
            hashed.remove("test")
            fixed_test = "test" if test is None else None
            if fixed_test and by_subject:
                _check_subjects(rows_by_pool)
    elif test is None:
        raise StudyError("splits: this data set has no test split of its own; give the fraction `test`, such as 0.2")
    parts = _hash_parts(rows_by_pool, hashed, fractions, salt)
    if fixed_test:
        parts["test"] = [(fixed_test, np.arange(len(rows_by_pool[fixed_test])))]
    for name, split in parts.items():
        if not sum(len(indices) for _, indices in split):
            raise StudyError(f"splits: no row falls into the split {name!r}; enlarge its fraction or the data set")
    return parts


def _hash_parts(rows_by_pool: dict[str, Rows], hashed: list[str], fractions: Fractions, salt: str) -> dict[str, Parts]:
    test, validation = fractions.test or 0, fractions.validation
    parts = {"train": []}
    if validation:
        parts["validation"] = []
    if test:
        parts["test"] = []
    for pool in hashed:
        rows = rows_by_pool[pool]
        place = _uniform(rows.ids if rows.subjects is None else rows.subjects, salt)
        chosen = {
            "test": place < test,
            "validation": (place >= test) & (place < test + validation),
            "train": (place >= test + validation) & (place < 1 - fractions.left_out),
        }
        for name, split in parts.items():
            split.append((pool, np.flatnonzero(chosen[name])))
    return parts


def _uniform(keys: np.ndarray, salt: str) -> np.ndarray:
    """(n,) numbers in [0, 1), each a function of its key and the salt alone."""
    known = {}
    for key in keys:
        if key not in known:
            digest = hashlib.sha256(f"{salt}\0{key}".encode()).digest()
            known[key] = int.from_bytes(digest[:_HASH_BYTES], "big") / 2.0 ** (8 * _HASH_BYTES)
    return np.array([known[key] for key in keys], np.float64)


def _check_ids(rows_by_pool: dict[str, Rows]) -> None:
    seen = set()
    for pool, rows in rows_by_pool.items():
        for row, name in enumerate(rows.ids):
            if name in seen:
                raise StudyError(f"row {row} of the pool {pool!r}: the id {name!r} stands twice; ids must be unique")
            seen.add(name)


def _check_subjects(rows_by_pool: dict[str, Rows]) -> None:
    shared = set(rows_by_pool["train"].subjects) & set(rows_by_pool["test"].subjects)
    if shared:
        raise StudyError(
            f"the subject {min(shared)!r} stands in both train and test of this data set; give `splits.test`, and the"
            " two are merged and split anew by subject"
        )
