"""The budget log beside the data: what all studies in all folders have spent on it with secure noise.

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
    """The paths of budget logs in folders, in their parents, and in their subfolders."""
    paths: set[Path] = set()
    for folder in map(Path, folders):
        paths |= {parent / NAME for parent in (folder, *folder.parents) if (parent / NAME).exists()}
        paths |= set(below(folder).books)
    return sorted(map(str, paths))


@dataclass(frozen=True)
class Below:
    """The targets outside a folder that links below it lead to, and the budget logs below it."""

    linked: tuple[Path, ...]
    books: tuple[Path, ...]


_FRESH_SECONDS = 10


def below(folder: Path) -> Below:
    """The links and budget logs below a folder, cached briefly, since a walk takes a second per million files."""
    return _walked(folder, int(time.monotonic() / _FRESH_SECONDS))


@functools.lru_cache
def _walked(folder: Path, _moment: int) -> Below:
    """Where links lead to many folders, the one around them all stands for them."""
    targets, books, due = set(), [], [folder]
    while due:
        with contextlib.suppress(OSError), os.scandir(due.pop()) as entries:  # folders that cannot be read are skipped
            for entry in entries:
                if entry.is_symlink():
                    target = Path(entry.path).resolve()
                    target = target if target.is_dir() else target.parent
                    if not target.is_relative_to(folder):
                        targets.add(target)
                elif entry.is_dir():
                    due.append(Path(entry.path))
                elif entry.name == NAME:
                    books.append(Path(entry.path))
    linked = [Path(os.path.commonpath(targets))] if len(targets) > _MOST_FOLDERS else sorted(targets)
    return Below(tuple(linked), tuple(sorted(books)))


def identity(entry: Mapping) -> str:
    """The unique id of a line of a budget log; for lines of earlier versions, a hash of the line."""
    return entry.get("id") or hashlib.sha256(json.dumps(dict(entry), sort_keys=True).encode()).hexdigest()


class DataBook:
    """A budget log that collects the lines of many folders' logs.

    Args:
        path: of the file, made when a first line is written.
        read: the entries of a book, from its path.
    """

    def __init__(self, path: str | os.PathLike, read: Callable[[Path], Iterator[dict]]):
        self.path, self._read = Path(path), read

    def entries(self) -> list[dict]:
        """The lines of the log, from the first.

        Raises:
            StudyError: a line is damaged.
        """
        return list(self._read(self.path))

    def add(self, entries: Sequence[dict]) -> None:
        """Append the lines that are missing, and flush them to the disk; the caller must hold the lock.

        Raises:
            StudyError: it cannot be written.
        """
        known = {identity(entry) for entry in self.entries()}
        missing = [entry for entry in entries if identity(entry) not in known]
        if not missing:
            return
        before = self.path.read_bytes() if self.path.exists() else b""
        mode = self.path.stat().st_mode if before else None  # the mode is kept, as a group may have write access
        if before and not before.endswith(b"\n"):
            before += b"\n"
        with self._told(), atomic(self.path, private=True, durable=True) as temporary:
            temporary.write_bytes(before + "".join(json.dumps(entry) + "\n" for entry in missing).encode())
            if mode is not None:
                temporary.chmod(mode)

    def check(self) -> None:
        """Refuse a log that cannot be written to.

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
        """A context that holds the log's lock, also against other folders and machines.

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
