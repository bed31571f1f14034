"""The book beside the data: what every folder, of whatever study, has spent on it under secure noise.

Each folder keeps a book of its own, by which its models are known (spending.py). Beside the data lies one of all of
them, so that a budget holds over all. A line stands here before it stands in its folder's own: a death in between
leaves more here than was spent, never less. Lines are told apart by what they hold, so that a folder may be moved or
copied.
"""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic, clear_disk_errors

NAME = "dpstudy-spent.jsonl"
_MOST_FOLDERS = 64  # that links of one data set lead to, each under its own name
_REMEDY = "let it be written to, or name another file that all studies of these records share: release: {book: FILE}"


def books_around(folders: Collection[str]) -> list[str]:
    """The books that there are in folders, in those around them, and in those inside."""
    found: set[Path] = set()
    for folder in map(Path, folders):
        found |= {parent / NAME for parent in (folder, *folder.parents) if (parent / NAME).exists()}
        found |= set(below(folder).books)
    return sorted(map(str, found))


@dataclass(frozen=True)
class Below:
    """What lies below a folder: the folders outside of it that links lead to, and books of what was spent."""

    linked: tuple[Path, ...]
    books: tuple[Path, ...]


_FRESH_SECONDS = 10


def below(folder: Path) -> Below:
    """What lies below a folder, as of a moment ago: a walk takes a second a million files, and every job asks."""
    return _walked(folder, int(time.monotonic() / _FRESH_SECONDS))


@functools.lru_cache
def _walked(folder: Path, _moment: int) -> Below:
    """Where links lead to many folders, the one around them all stands for them."""
    found, books, due = set(), [], [folder]
    while due:
        with contextlib.suppress(OSError), os.scandir(due.pop()) as entries:  # what cannot be read is read by nobody
            for entry in entries:
                if entry.is_symlink():
                    target = Path(entry.path).resolve()
                    target = target if target.is_dir() else target.parent
                    if not target.is_relative_to(folder):
                        found.add(target)
                elif entry.is_dir():
                    due.append(Path(entry.path))
                elif entry.name == NAME:
                    books.append(Path(entry.path))
    linked = [Path(os.path.commonpath(found))] if len(found) > _MOST_FOLDERS else sorted(found)
    return Below(tuple(linked), tuple(sorted(books)))


def identity(entry: Mapping) -> str:
    """What tells a line from every other: its id; of an earlier version's, all that it holds."""
    return entry.get("id") or hashlib.sha256(json.dumps(dict(entry), sort_keys=True).encode()).hexdigest()


class DataBook:
    """A file of the lines of many folders' books.

    Args:
        path: of the file, made when a first line is written.
        read: the entries of a book, from its path.
    """

    def __init__(self, path: str | os.PathLike, read: Callable[[Path], Iterator[dict]]):
        self.path, self._read = Path(path), read

    def entries(self) -> list[dict]:
        """Its lines, from the first.

        Raises:
            StudyError: a line is damaged.
        """
        return list(self._read(self.path))

    def add(self, entries: Sequence[dict]) -> None:
        """Add those that are not there; on the disk when this returns. Its lock must be held.

        Raises:
            StudyError: it cannot be written.
        """
        known = {identity(entry) for entry in self.entries()}
        missing = [entry for entry in entries if identity(entry) not in known]
        if not missing:
            return
        before = self.path.read_bytes() if self.path.exists() else b""
        mode = self.path.stat().st_mode if before else None  # a group may share it
        if before and not before.endswith(b"\n"):
            before += b"\n"
        with self._told(), atomic(self.path, private=True, durable=True) as temporary:
            temporary.write_bytes(before + "".join(json.dumps(entry) + "\n" for entry in missing).encode())
            if mode is not None:
                temporary.chmod(mode)

    def check(self) -> None:
        """Refuse where lines could not be written.

        Raises:
            StudyError: says so, and what would help.
        """
        file = self.path if self.path.exists() else self.path.parent
        if not (os.access(self.path.parent, os.W_OK) and os.access(file, os.W_OK)):
            raise StudyError(
                f"{self.path}: cannot be written, and what secure noise spends on these records is written down there; "
                f"{_REMEDY}"
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold it against all others, of other folders and machines too.

        Raises:
            StudyError: it cannot be locked.
        """
        with self._told():
            lock = os.open(self.path.with_name(f".{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o660)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
            except OSError as error:
                raise StudyError(
                    f"{self.path}: cannot be locked ({error.strerror}), and two that spend at once could miss each "
                    f"other; {_REMEDY}"
                ) from None
            yield
        finally:
            os.close(lock)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            with clear_disk_errors(self.path):
                yield
        except OSError as error:
            raise StudyError(f"{self.path}: cannot be written ({error.strerror}); {_REMEDY}") from None
