"""Preparing a data set: reading it and writing its shards, one job each, and then its manifest."""

import contextlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table
from dpstudy.core.job import notice
from dpstudy.data.image_files import UnreadableImageError
from dpstudy.data.names import splits_of
from dpstudy.data.odd import odd, odd_look
from dpstudy.data.own import own_reader, with_own_names
from dpstudy.data.positives import at_most, refuse_more
from dpstudy.data.reader import Reader, Rows
from dpstudy.data.readers import open_own, open_reader
from dpstudy.data.records import Records, concatenate
from dpstudy.data.shards import write_manifest, write_shard
from dpstudy.data.shared_records import SeenImages, check_files, in_both
from dpstudy.data.source import multi_labels, single_labels
from dpstudy.data.splits import Parts, assign
from dpstudy.data.weak_delta import check_delta

_SALT = "dpstudy split"
_UNITS = ("record", "subject")


def data_root(config_value: str) -> Path:
    """The folder of all data sets: the environment variable DPSTUDY_DATA, else the config's value."""
    return Path(os.environ.get("DPSTUDY_DATA") or config_value)


def look_through(dataset: str, options: dict, data_root: Path, delta: str, numbered: bool = False) -> list[str]:
    """Check a data set before it is prepared; the sentences that its owner should read.

    It decodes the first image of each pool, and others only where records are named by their content (own_names).

    Args:
        numbered: as of `prepare_shard`.

    Returns:
        What its owner should know, a sentence each.

    Raises:
        StudyError: as `prepare_shard`, but for what only the other images can show.
    """
    sentences: list[str] = []
    with _named(dataset):
        reader = _opened(options, data_root, numbered)
        splits = _splits(reader, options, "train", True)
        pools = {pool: reader.rows(pool) for pool in reader.pools}
        for pool, rows in pools.items():
            check_files(rows)
            if len(rows) and not options.get("unreadable"):
                images = reader.read(pool, np.zeros(1, np.int64)).images
                sentences += [] if images is None else odd_look(options, images[0])
    check_delta(dataset, options | {"delta": delta}, _learned_from(reader, splits, options))
    sentences += [in_both(pools), *odd(options, open_own(options, data_root), splits.get("test", []))]
    return [sentence for sentence in sentences if sentence]


@dataclass(frozen=True)
class Sizes:
    """Numbers of records, units and labels, from the table or the file names alone; for the owner's eyes only.

    Attributes:
        units: persons, or records, that are learned from; public.
        records: of them that are learned from.
        tested: records that are for the scores.
        shares: (m,) of the records that are learned from, that bear each label.
        multi_label: whether a record may bear several.
        classes: their names.
    """

    units: int
    records: int
    tested: int
    shares: np.ndarray
    multi_label: bool
    classes: list[str]


def sizes(dataset: str, options: dict, data_root: Path) -> Sizes:
    """The numbers of records of a user's own data set; pixels are read only to name records without names.

    Raises:
        StudyError: as `look_through`, or its reader knows nothing before it reads images.
    """
    with _named(dataset):
        reader = _opened(options, data_root, False)
        plain = open_own(options, data_root)
        if not hasattr(plain, "known"):
            raise StudyError(
                f"reader {options['reader']!r}: nothing is known of its records before they are read, so there is no "
                "plan; `release: {budget: ...}` holds a run to what you allow"
            )
        splits = _splits(reader, options, "train", True)
        labels_of = {pool: plain.known(pool).labels for pool in plain.pools}
        labels = np.concatenate([labels_of[pool][indices] for pool, indices in splits["train"] if pool in labels_of])
        count = {name: sum(len(indices) for _, indices in parts) for name, parts in splits.items()}
    classes = list(reader.classes)
    borne = labels.mean(0) if reader.multi_label else np.bincount(labels, minlength=len(classes)) / len(labels)
    units = _learned_from(reader, splits, options)
    return Sizes(units, len(labels), count.get("test", 0), borne, reader.multi_label, classes)


def prepare_shard(
    dataset: str,
    options: dict,
    data_root: Path,
    split: str,
    shard: int,
    path: str | os.PathLike,
    private: bool,
    change: Callable[[Records], Records] | None = None,
    delta: str | None = None,
    positives: int | None = None,
    numbered: bool = False,
) -> None:
    """Read shard `shard` of a split (rows i*n//k to (i+1)*n//k for shard i of k) and write it to `path`.

    With `change`, the rows pass through it before they are written (a demonstration plants images so). With `delta` it
    is compared with the number of units that will be learned from, and with `positives` the labels of each record that
    will be learned from are counted; other values later read nothing anew. With `numbered` a user's own records without
    names keep their row numbers for ids (spending.Spending.numbered).

    Raises:
        StudyError: the data are missing or damaged, a label is out of range, the split has fewer rows than shards, two
            subjects share an image file, delta is too weak, or a record has too many positive labels.
    """
    with _named(dataset):
        count = options.get("shards", 1)
        if not 0 <= shard < count:
            raise StudyError(f"shard {shard} does not exist; there are {count}")
        reader = _opened(options, data_root, numbered, private)
        if private and len(reader.classes) < 2:
            raise StudyError(
                f"there is nothing to tell apart: {reader.classes[0]!r} is the only class; name two or more"
            )
        splits = _splits(reader, options, split, private)
        parts = splits[split]
        rows = sum(len(indices) for _, indices in parts)
        if rows < count:
            raise StudyError(f"the split {split!r} has {rows} rows for {count} shards; lower `shards`")
        if shard == 0:  # once per split, and before any job can use its shards
            for pool in reader.pools:
                check_files(reader.rows(pool))
    if delta is not None:
        check_delta(dataset, options | {"delta": delta}, _learned_from(reader, splits, options))
    with _named(dataset):
        tolerated = options.get("unreadable", 0.0)
        records, lost = _read(reader, parts, shard * rows // count, (shard + 1) * rows // count, tolerated)
        if options.get("contributions") == "average" and split != "test":
            records = _counted(records, reader, parts)
        if options.get("beyond") == "truncate" and split != "test":
            records = at_most(records, options["positives"])
        elif positives is not None and split != "test":
            refuse_more(records, positives)
        write_shard(path, change(records) if change else records, private, lost)


def prepare_manifest(
    dataset: str,
    options: dict,
    data_root: Path,
    split: str,
    shard_paths: list[str | os.PathLike],
    path: str | os.PathLike,
    private: bool,
    other_shards: Sequence[str | os.PathLike] = (),
) -> None:
    """Write the manifest of a split once its shards are finished.

    Args:
        other_shards: of the other splits, where images are to be compared with theirs.

    Raises:
        StudyError: a shard is missing or damaged, the shards do not fit together, or two subjects share an image.
    """
    with _named(dataset):
        classes = open_reader(options.get("reader"), options, data_root).classes
        single = private and own_reader(options) is not None and options.get("unit", "record") == "record"
        seen = SeenImages(options.get("reader"), single)
        for other in other_shards:
            seen.look(read_table(other), other=True)
        known = {"dataset": dataset, "split": split, "classes": classes}
        look = seen.look if private else None
        write_manifest(path, shard_paths=shard_paths, private=private, look=look, **known)
    if told := seen.told():
        notice(told)


@contextlib.contextmanager
def _named(dataset: str) -> Iterator[None]:
    """Put the data set's name in front of a StudyError."""
    try:
        yield
    except StudyError as error:
        raise StudyError(f"data set {dataset!r}: {error}") from None


def _opened(options: dict, data_root: Path, numbered: bool, private: bool = True) -> Reader:
    """A data set; the user's own records in it, and their subjects, are named so that no other has a hand in it."""
    return open_reader(options.get("reader"), with_own_names(options, numbered) if private else options, data_root)


def _splits(reader: Reader, options: dict, split: str, private: bool) -> dict[str, Parts]:
    rows_by_pool = {pool: reader.rows(pool) for pool in reader.pools}
    unit = options.get("unit", "record")
    if unit not in _UNITS:
        raise StudyError(f"unit: {unit!r} does not exist; it is record or subject")
    if unit == "subject" and any(rows.subjects is None for rows in rows_by_pool.values()):
        raise StudyError("unit is subject, but no subject is known of the records; give `subject_column`")
    per_subject = options.get("per_subject", 1) if unit == "subject" else None
    splits = assign(rows_by_pool, splits_of(options, private), _SALT, per_subject)
    if split not in splits:
        raise StudyError(f"there is no split {split!r}; there are {', '.join(splits)}")
    return splits


def _learned_from(reader: Reader, splits: dict[str, Parts], options: dict) -> int:
    """How many units, records or subjects, train and validation have together."""
    parts = [part for name, of_split in splits.items() if name != "test" for part in of_split]
    if options.get("unit") == "subject":
        return len({subject for pool, indices in parts for subject in reader.rows(pool).known_subjects[indices]})
    return sum(len(indices) for _, indices in parts)


def _read(reader: Reader, parts: Parts, start: int, stop: int, tolerated: float) -> tuple[Records, int]:
    """Rows `start` to `stop` - 1 of the parts put end to end, their labels checked; without the unreadable ones, whose
    number is the second."""
    batches: list[Records] = []
    lost: list[str] = []
    first = 0
    for pool, indices in parts:
        chosen = indices[max(0, start - first) : max(0, stop - first)]
        if len(chosen):
            rows = reader.rows(pool)
            batches += _readable(reader, pool, chosen, lost, rows)
        first += len(indices)
    if len(lost) > tolerated * (stop - start) or not batches:
        allowed = f"but `unreadable` is {tolerated}" if tolerated else "and `unreadable` is not given"
        raise StudyError(f"{len(lost)} of {stop - start} images cannot be read, {allowed}; the first: {lost[0]}")
    if lost:
        notice(f"{len(lost)} of {stop - start} images cannot be read, and are left out; the first: {lost[0]}")
    records = concatenate(batches)
    check = multi_labels if reader.multi_label else single_labels
    check(records.labels, reader.classes, "after splitting", first_row=start)
    return records, len(lost)


def _counted(records: Records, reader: Reader, parts: Parts) -> Records:
    """With how many rows of the split are of each one's subject, those counted whose images cannot be read."""
    seen = Counter(name for pool, indices in parts for name in reader.rows(pool).known_subjects[indices])
    if records.subjects is None:
        raise StudyError("contributions: average, but no subject is known of the records")
    return replace(records, counts=np.array([seen[name] for name in records.subjects], np.int32))


def _asked(reader: Reader, pool: str, indices: np.ndarray, rows: Rows) -> Records:
    """The rows of a pool that are asked for.

    Raises:
        StudyError: the reader gives others, or of other subjects: whose they are decides on splits and guarantees.
    """
    records = reader.read(pool, indices)
    for what in ("ids", "subjects"):
        expected, read = getattr(rows, what), getattr(records, what)
        if expected is not None and not (read is not None and np.array_equal(expected[indices], read)):
            raise StudyError(f"its reader gives records of the pool {pool!r} with other {what} than its `rows` say")
    return records


def _readable(reader: Reader, pool: str, indices: np.ndarray, lost: list[str], rows: Rows) -> list[Records]:
    """The rows whose images can be read, one by one where some cannot; what is wrong with the others goes to `lost`.

    Which record is left out depends on its own file alone.
    """
    try:
        return [_asked(reader, pool, indices, rows)]
    except UnreadableImageError:
        records = []
    for index in indices:
        try:
            records.append(_asked(reader, pool, np.array([index]), rows))
        except UnreadableImageError as error:
            lost.append(str(error))
            logging.getLogger("dpstudy").warning("cannot be read: %s", error)
    return records
