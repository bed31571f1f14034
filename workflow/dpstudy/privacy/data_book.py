"""The budget log beside the data: what all studies in all folders have spent on it with secure noise.

Each folder keeps a book of its own, by which its models are known (spending.py). Beside the data lies one of all of
them, so that a budget holds over all. A line stands here before it stands in its folder's own: a death in between
leaves more here than was spent, never less. Lines are told apart by what they hold, so that a folder may be moved or
copied. They name the folders that were read as seen from the log, which is moved with them.
"""

import contextlib
import fcntl
import functools
import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic, disk_trouble
from dpstudy.privacy.spent_lines import identity, is_lost, read_lines, with_folders

NAME = "dpstudy-spent.jsonl"
_MOST_FOLDERS = 64  # that links of one data set lead to, each under its own name
_OTHER = "or name another file that all studies of these records share: release: {book: FILE}"


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
    """Links in folders that links lead to are followed too; where they lead to many, the one around them all stands
    for them."""
    targets, books, due, seen = set(), [], [folder], {folder}
    while due:
        with contextlib.suppress(OSError), os.scandir(due.pop()) as entries:  # folders that cannot be read are skipped
            for entry in entries:
                inner = None
                if entry.is_symlink():
                    target = Path(os.path.realpath(entry.path))
                    if not os.path.exists(target):
                        continue
                    inner = target if os.path.isdir(target) else None  # of a file's folder nothing else is read
                    if not target.is_relative_to(folder):
                        targets.add(inner or target.parent)
                elif entry.is_dir():
                    inner = Path(entry.path)
                elif entry.name == NAME:
                    books.append(Path(entry.path))
                if inner and inner not in seen:
                    seen.add(inner)
                    due.append(inner)
    outer = sorted(target for target in targets if targets.isdisjoint(target.parents))
    linked = [Path(os.path.commonpath(outer))] if len(outer) > _MOST_FOLDERS else outer
    return Below(tuple(linked), tuple(sorted(books)))


def once(paths: Iterable[str | os.PathLike]) -> list[str]:
    """Each log under one name, though links or mounts lead to its folder by several: it is locked once."""
    logs: dict[object, str] = {}
    for path in sorted(map(os.path.realpath, paths)):
        folder, name = os.path.split(path)
        try:
            state = os.stat(folder)
        except OSError:  # told when it is written
            logs[path] = path
        else:
            logs.setdefault((state.st_dev, state.st_ino, name), path)
    return list(logs.values())


class DataBook:
    """A budget log that collects the lines of many folders' logs.

    Args:
        path: of the file, made when a first line is written.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self._lock = self.path.with_name(f".{self.path.name}.lock")

    def entries(self) -> list[dict]:
        """The lines of the log, from the first, with the folders that lie now where theirs lay, as seen from the log.

        Raises:
            StudyError: it cannot be read, or a line is damaged.
        """
        here, lines = self.path.parent, read_lines(self.path, self._remedy())
        return [_with_folders(one, lambda folder: os.path.normpath(here / folder)) for one in lines]

    def add(self, entries: Sequence[dict]) -> None:
        """Append the lines that are missing, and flush them to the disk; the caller must hold the lock.

        Args:
            entries: whose folders are absolute.

        Raises:
            StudyError: it cannot be written.
        """
        known = {identity(entry) for entry in self.entries()}
        missing = [entry for entry in entries if identity(entry) not in known]
        if not missing:
            return
        here = self.path.parent
        lines = [_with_folders(entry, lambda folder: os.path.relpath(folder, here)) for entry in missing]
        before = self.path.read_bytes() if self.path.exists() else b""
        mode = self.path.stat().st_mode if before else None  # the mode is kept, as a group may have write access
        if before and not before.endswith(b"\n"):
            before += b"\n"
        with self._told(self.path), atomic(self.path, private=True, durable=True) as temporary:
            temporary.write_bytes(before + "".join(json.dumps(line) + "\n" for line in lines).encode())
            if mode is not None:
                temporary.chmod(mode)

    def check(self) -> None:
        """Refuse a log that cannot be read and written to, or locked.

        Raises:
            StudyError: says so, and what would help.
        """
        file = self.path if self.path.exists() else self.path.parent
        if not (os.access(self.path.parent, os.W_OK) and os.access(file, os.R_OK | os.W_OK)):
            raise StudyError(
                f"{self.path}: cannot be written, and what secure noise spends on these records is written down there; "
                f"{self._remedy()}"
            )
        if self._lock.exists() and not os.access(self._lock, os.R_OK | os.W_OK):
            raise StudyError(f"{self._lock}: cannot be written, and {self.path.name} is locked by it; {self._remedy()}")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """A context that holds the log's lock, also against other folders and machines.

        Raises:
            StudyError: it cannot be locked.
        """
        with self._told(self._lock):
            lock = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o660)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
            except OSError as error:
                raise StudyError(
                    f"{self.path}: cannot be locked ({error.strerror}), and two that spend at once could miss each "
                    f"other; {self._remedy()}"
                ) from None
            yield
        finally:
            os.close(lock)

    def _remedy(self) -> str:
        folder = self.path.parent
        first = "let it be read and written to" if folder.is_dir() else f"there is no folder {folder}: make it"
        return f"{first}, {_OTHER}"

    @contextlib.contextmanager
    def _told(self, path: Path) -> Iterator[None]:
        """A context that turns errors of the system while a file is written into a StudyError with a remedy."""
        try:
            yield
        except OSError as error:
            if trouble := disk_trouble(error):
                raise StudyError(f"{path}: {trouble}") from None
            raise StudyError(f"{path}: cannot be written ({error.strerror}); {self._remedy()}") from None


def _with_folders(entry: dict, change: Callable[[str], str]) -> dict:
    return entry | {"folders": [change(folder) for folder in entry["folders"]]} if "folders" in entry else entry


def merged(entries: Sequence[dict], books: Sequence[DataBook], others: bool) -> list[dict]:
    """The lines of a folder's log and of those beside the data, each once; "lost" are those that no folder is found of.

    Args:
        others: none is called lost: they are about other records.

    Raises:
        StudyError: a line is damaged.
    """
    lines: dict[str, dict] = {}
    found: dict[str, bool] = {}  # by any of the logs beside the data in which it stands
    for book in books:
        for entry in book.entries():
            key = identity(entry)
            found[key] = found.get(key, False) or not is_lost(entry, book.path.parent)
            lines[key] = with_folders(entry, lines.get(key))
    for entry in entries:
        lines[identity(entry)] = with_folders(entry, lines.get(identity(entry)))
    return [line if others or found.get(key, True) else line | {"lost": True} for key, line in lines.items()]
