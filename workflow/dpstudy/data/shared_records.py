"""Checks for one image under two subjects: protecting one subject is then pointless, as the other has a copy.

Files are compared over a whole data set before any image is decoded. Decoded images are compared over a whole data set
too where it is a user's own, and a match is refused; elsewhere (a published benchmark's blank images, say) they are
compared within a split, and a match is a warning. Where records are protected one by one, copies are told of.
"""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_data
from dpstudy.data.reader import Rows

_BLANK = ". Both are of one colour throughout: where the files are not, mend `window` or `frame`, and leave them in"
_log = logging.getLogger("dpstudy")


def check_files(rows: Rows) -> None:
    """Refuse identical files that belong to different subjects; only files of equal size are read.

    Reads nothing where no files or no subjects are known.

    Raises:
        StudyError: naming both rows and both subjects.
    """
    if rows.files is None or rows.subjects is None:
        return
    for pair in _copies(zip(rows.files, rows.ids, rows.subjects, strict=True)):
        raise StudyError(_sentence(*pair))


def in_both(pools: Mapping[str, Rows]) -> str:
    """A warning where identical files are in two pools, such as `train` and `test`; else "".

    Scores would be of images that were learned from. Nothing is read where no files are known, and of those only such
    as have equal sizes.
    """
    known = ((file, rows.ids[row], pool) for pool, rows in pools.items() for row, file in enumerate(rows.files or ()))
    duplicates = list(_copies(known))
    if not duplicates:
        return ""
    more = f" ({len(duplicates) - 1:,} more likewise)" if len(duplicates) > 1 else ""
    (first, _), (second, _) = duplicates[0]
    return (
        f"{first!r} and {second!r} are the same image{more}: scores would be of images that were learned from; take "
        "one of the two out"
    )


def _copies(files: Iterable[tuple[Path, str, str]]) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Pairs of identical files of different owners, an (id, owner) each; only files of equal size are read.

    Args:
        files: (file, id, owner).
    """
    by_size: dict[int, list[tuple[Path, str, str]]] = {}
    for file, name, owner in files:
        if file.is_file() and (size := file.stat().st_size):  # of others their reader says what is wrong
            by_size.setdefault(size, []).append((file, name, owner))
    for equal in by_size.values():
        seen: dict[bytes, tuple[str, str]] = {}
        for file, name, owner in equal if len({owner for *_, owner in equal}) > 1 else ():
            first = seen.setdefault(_digest(file), (name, owner))
            if first[1] != owner:
                yield first, (name, owner)


class SeenImages:
    """The decoded images seen so far, shard by shard, to find one that belongs to two subjects, or is there twice.

    Args:
        reader: of the data set.
        single: its records are protected one by one, and are the user's own: copies are counted, whoever's they are.
    """

    def __init__(self, reader: str | None, single: bool = False):
        self._reader, self._single = reader, single
        self._seen: dict[bytes, tuple[str, str]] = {}
        self._copies: list[tuple[str, str]] = []

    def look(self, shard: pa.Table, other: bool = False) -> None:
        """Register a shard's images, where it has images, and subjects or records to count.

        Args:
            other: it is of another split, which counts its copies itself.

        Raises:
            StudyError: on own data: an image is there already, under another subject.
        """
        named = "subject" in shard.column_names
        if "image" not in shard.column_names or not (named or self._single):
            return
        ids = shard.column("id").to_pylist()
        subjects = shard.column("subject").to_pylist() if named else [""] * len(ids)
        for name, subject, image in zip(ids, subjects, shard.column("image"), strict=True):
            first = self._seen.setdefault(hashlib.sha256(image.as_buffer()).digest(), (name, subject))
            if first[1] == subject:
                if self._single and not other and first[0] != name:
                    self._copies.append((name, first[0]))
                continue
            if own_data(self._reader):
                blank = len(set(image.as_buffer().to_pybytes())) == 1
                raise StudyError(_sentence(first, (name, subject)) + (_BLANK if blank else ""))
            _log.warning("%s", _sentence(first, (name, subject)))

    def told(self) -> str:
        """A sentence about the copies that were counted; "" where there are none."""
        if not self._copies:
            return ""
        count, (name, first) = len(self._copies), self._copies[0]
        return (
            f"{count:,} image{'s are copies of others' if count > 1 else ' is a copy of another'}, such as {name!r} of "
            f"{first!r}: with unit: record each is protected by itself, and who is in k of them by k times epsilon; "
            "where a copy is in the test split, what was learned from is scored; leave copies out"
        )


def _sentence(first: tuple[str, str], second: tuple[str, str]) -> str:
    return (
        f"the images {first[0]!r} of the subject {first[1]!r} and {second[0]!r} of the subject {second[1]!r} are the "
        "same; an image belongs to one subject: leave one of the two rows out, or mend its subject"
    )


def _digest(file: Path) -> bytes:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").digest()
