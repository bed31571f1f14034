"""Splits by a hash of each record's (or subject's) name, so that a record's split does not depend on other records.

Adding or removing a record therefore moves no other one, and the order of the source does not matter: the rule costs
no privacy. Fractions are met in expectation, not exactly.

A number of `records` is met exactly, by taking those whose hashes are lowest. That is the way to a data set of a chosen
size: n is then a constant of the config, whatever records there are, where the size that a fraction leaves is counted
on them. The price is that the cut-off depends on all ids. For the data set of the chosen records nothing changes: the
guarantee is about adding a record to it or removing one. In the collection that they were chosen from, one more record
may push another out, which amounts to replacing one; the ledger says so (names.CHOSEN). Where ids are places, which are
as public as their number, the choice says nothing of any record.
"""

import hashlib

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.names import Fractions, split_fractions
from dpstudy.data.reader import EXTRA, Rows

_HASH_BYTES = 8

Parts = list[tuple[str, np.ndarray]]  # (pool, indices of its rows, ascending)


def assign(rows_by_pool: dict[str, Rows], splits: dict, salt: str, per_subject: int | None = None) -> dict[str, Parts]:
    """The rows of each split: train, validation (if its fraction is not 0) and test (unless it is 0), in order.

    A source with the pool "all" needs the fraction `test`. A source with pools train and test keeps its own test
    split, and `test` may only be 0 (no test split at all), unless it names subjects: then, given `test`, the pools are
    merged and split anew. Where subjects are named, all rows of a subject go to one split. Rows of the pool EXTRA go to
    train, all of them.

    Args:
        rows_by_pool: the rows of each pool of the source.
        splits: {"test": fraction, "validation": fraction, "left_out": fraction}, of the rows that are split; rows that
            are left out belong to no split. Instead of "left_out", "records" says how many train and validation have
            together. "draw" (0 where absent) is a number that makes all of it anew.
        salt: goes into the hash, so that splits for different purposes are independent.
        per_subject: of the rows of each subject in train and validation, so many are kept, those of the lowest hashes
            of their ids: which, depends on the subject's own rows alone. None: all.

    Raises:
        StudyError: `test` is missing or superfluous, the source's pools share a subject, an id stands twice, a split is
            empty, or there are fewer rows than `records`.
    """
    fractions = split_fractions(splits)
    test = fractions.test
    salt = f"{salt}, draw {fractions.draw}" if fractions.draw else salt
    _check_ids(rows_by_pool)
    by_subject = all(rows.subjects is not None for rows in rows_by_pool.values())
    hashed, fixed_test = [pool for pool in rows_by_pool if pool != EXTRA], None
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
    parts = _hash_parts({pool: rows_by_pool[pool] for pool in hashed}, fractions, salt)
    if per_subject is not None:
        for name in parts.keys() - {"test"}:
            parts[name] = _at_most(rows_by_pool, parts[name], per_subject, salt)
    if EXTRA in rows_by_pool:
        parts["train"].append((EXTRA, np.arange(len(rows_by_pool[EXTRA]))))
    if fixed_test:
        parts["test"] = [(fixed_test, np.arange(len(rows_by_pool[fixed_test])))]
    for name, split in parts.items():
        if not sum(len(indices) for _, indices in split):
            raise StudyError(f"splits: no row falls into the split {name!r}; enlarge its fraction or the data set")
    return parts


def _hash_parts(rows_by_pool: dict[str, Rows], fractions: Fractions, salt: str) -> dict[str, Parts]:
    test, validation = fractions.test or 0, fractions.validation
    named = {"train": True, "validation": validation, "test": test}
    parts: dict[str, Parts] = {name: [] for name, asked in named.items() if asked}
    keys = {pool: rows.ids if rows.subjects is None else rows.subjects for pool, rows in rows_by_pool.items()}
    places = {pool: _uniform(key, salt) for pool, key in keys.items()}
    kept = _kept(rows_by_pool, {pool: place >= test for pool, place in places.items()}, fractions.records, salt)
    for pool, place in places.items():
        chosen = {
            "test": place < test,
            "validation": kept[pool] & (place >= test) & (place < test + validation),
            "train": kept[pool] & (place >= test + validation) & (place < 1 - fractions.left_out),
        }
        for name, split in parts.items():
            split.append((pool, np.flatnonzero(chosen[name])))
    return parts


def _kept(
    rows_by_pool: dict[str, Rows], eligible: dict[str, np.ndarray], records: int | None, salt: str
) -> dict[str, np.ndarray]:
    """Pool -> (n,) whether train or validation may have the row: all, or `records` of the eligible ones."""
    if records is None:
        return {pool: np.ones(len(rows), bool) for pool, rows in rows_by_pool.items()}
    allowed = np.concatenate([eligible[pool] for pool in rows_by_pool])
    kept = np.zeros(len(allowed), bool)
    ids = np.concatenate([rows.ids for rows in rows_by_pool.values()])
    kept[np.flatnonzero(allowed)[lowest(ids[allowed], records, salt, "splits")]] = True
    ends = np.cumsum([len(rows) for rows in rows_by_pool.values()])[:-1]
    return dict(zip(rows_by_pool, np.split(kept, ends), strict=True))


def lowest(ids: np.ndarray, count: int, salt: str, where: str) -> np.ndarray:
    """The ascending indices of the `count` ids with the lowest hashes, which are independent of the splits' hashes.

    Smaller counts choose a part of what larger ones do.

    Raises:
        StudyError: there are fewer ids.
    """
    if count > len(ids):
        raise StudyError(f"{where}: records is {count}, but there are only {len(ids)} rows to choose from")
    return np.sort(np.argsort(_uniform(ids, f"{salt}, records"), kind="stable")[:count])


def _at_most(rows_by_pool: dict[str, Rows], parts: Parts, per_subject: int, salt: str) -> Parts:
    """Of the rows of a split, at most so many of each subject, in all pools together."""
    places = [(pool, index) for pool, indices in parts for index in indices.tolist()]
    hashes = [_uniform(rows_by_pool[pool].ids[indices], f"{salt}, per subject") for pool, indices in parts]
    seen: dict[str, int] = {}
    kept: dict[str, list[int]] = {pool: [] for pool, _ in parts}
    for place in np.argsort(np.concatenate(hashes), kind="stable"):
        pool, index = places[place]
        subject = rows_by_pool[pool].known_subjects[index]
        seen[subject] = seen.get(subject, 0) + 1
        if seen[subject] <= per_subject:
            kept[pool].append(index)
    return [(pool, np.sort(np.array(kept[pool], np.intp))) for pool, _ in parts]


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
    shared = set(rows_by_pool["train"].known_subjects) & set(rows_by_pool["test"].known_subjects)
    if shared:
        raise StudyError(
            f"the subject {min(shared)!r} stands in both train and test of this data set; give `splits.test`, and the"
            " two are merged and split anew by subject"
        )
