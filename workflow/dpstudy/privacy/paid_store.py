"""The store of models trained with secure noise, outside Snakemake's outputs so that no run removes them.

A training's files lie in a folder of their own, named by their hashes: a changed file is seen even where a line of the
book, by an earlier version, names none. Beside such folders lies the checkpoint of a training that is under way.
"""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic, clear_disk_errors, read_json, sha256, sync, write_json

_LONGEST = 100  # characters of a folder's name
_MARK = 16  # hexadecimal digits of a hash, as in `made_by`
_log = logging.getLogger("dpstudy")


def name_of(files: Mapping[str, str]) -> str:
    """The folder name of a training, from its files' SHA-256 by name."""
    return hashlib.sha256(json.dumps(dict(files), sort_keys=True).encode()).hexdigest()[:_MARK]


def hashes_of(folder: str | os.PathLike) -> dict[str, str]:
    """Name -> SHA-256 of each file in a folder."""
    return {path.name: sha256(path) for path in sorted(Path(folder).iterdir())}


class PaidStore:
    """The store: folders of trainings, and hashes of the records that they read.

    Args:
        root: results/privacy/paid.
    """

    def __init__(self, root: str | os.PathLike):
        self.root = Path(root)

    def place(self, cell: str, seeds: Sequence[int]) -> Path:
        """The folder that holds the trainings of a cell with these seeds, each in a folder of its own."""
        name = "+".join(map(str, seeds))
        if len(name) > _LONGEST:
            name = hashlib.sha256(name.encode()).hexdigest()[:_MARK]
        return self.root / "cells" / cell / f"seed={name}"

    def has(self, line: Mapping) -> bool:
        """Whether the files of a line of a budget log are in the store."""
        return "files" in line and any((self.root / "cells" / line["cell"]).glob(f"*/{name_of(line['files'])}"))

    def checkpoint(self, cell: str, seeds: Sequence[int]) -> Path:
        """The path of the checkpoint of a cell's training with these seeds."""
        return self.place(cell, seeds) / "checkpoint.safetensors"

    def trainings(self, cell: str, seeds: Sequence[int]) -> list[Path]:
        """The folders of all complete trainings of a cell with these seeds."""
        return [path for path in sorted(self.place(cell, seeds).glob("[!.]*")) if path.is_dir()]

    @contextlib.contextmanager
    def claim(self, cell: str, seeds: Sequence[int]) -> Iterator[None]:
        """A context that locks the training of a cell with these seeds against other processes.

        Whoever else wants to train it waits, then finds what was made. The lock ends with its process.

        Raises:
            StudyError: the folder cannot be written to.
        """
        place = self.place(cell, seeds)
        with clear_disk_errors(place):
            self._make(place)
            lock = os.open(place / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _log.info("cell %s: another process trains it, and is waited for", cell)
                fcntl.flock(lock, fcntl.LOCK_EX)
            except OSError:  # no file locks: of two trainings that end here, the second reads the first one's line
                _log.warning("%s cannot be locked: of two trainings of one cell the first to end will count", place)
            yield
        finally:
            os.close(lock)

    def _make(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        os.chmod(self.root, 0o700)

    def add(self, cell: str, seeds: Sequence[int], write: Callable[[Path], None]) -> dict[str, str]:
        """Store what `write` puts into a folder: atomically, flushed to the disk, readable by the owner alone.

        Returns:
            name -> SHA-256 of each file.

        Raises:
            StudyError: the disk is full, or the folder cannot be written to.
        """
        place = self.place(cell, seeds)
        with clear_disk_errors(place):
            self._make(place)
            for leftover in place.glob(".*.tmp"):
                shutil.rmtree(leftover, ignore_errors=True)
            temporary = place / f".{os.getpid()}.tmp"
            temporary.mkdir(mode=0o700)
            try:
                write(temporary)
                for path in temporary.iterdir():
                    os.chmod(path, 0o600)
                    sync(path)
                sync(temporary)
                files = hashes_of(temporary)
                folder = place / name_of(files)
                shutil.rmtree(folder, ignore_errors=True)  # of the same name: the same files, or changed ones
                os.rename(temporary, folder)
                for path in (place, *place.parents):
                    sync(path)
                    if path == self.root.parent:
                        break
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
        return files

    def remove(self, cell: str, seeds: Sequence[int], files: Mapping[str, str]) -> None:
        """Remove a training that the budget log refused."""
        shutil.rmtree(self.place(cell, seeds) / name_of(files), ignore_errors=True)

    def check(self, folder: Path) -> None:
        """Check that the files of a stored training are unchanged.

        Raises:
            StudyError: the files of a training are not those that were written.
        """
        if name_of(hashes_of(folder)) != folder.name:
            raise StudyError(
                f"{folder}: a file there is not as it was written (its SHA-256 differs), and nothing is made of it; "
                "restore it from a backup"
            )

    def note_content(self, path: str | os.PathLike) -> str | None:
        """Record and return a hash of the records behind a file, to recognise them when the file is remade.

        Returns:
            None where the file, or what it vouches for, is missing or damaged.

        Raises:
            StudyError: the disk is full, or the folder cannot be written to.
        """
        from dpstudy.core.contents import content_of

        try:
            mark = sha256(path)[:_MARK]
            if (known := self.content(mark)) is not None:
                return known
            known = content_of(path)
        except StudyError:
            return None
        write_json(self.root / "contents" / f"{mark}.json", {"content": known}, private=True)
        return known

    def content(self, mark: str) -> str | None:
        """The recorded hash of the records behind a file whose hash is `mark`; None where there is none."""
        path = self.root / "contents" / f"{mark}.json"
        return read_json(path)["content"] if path.exists() else None

    def same(self, mark: str, other: str) -> bool:
        """Whether two files, given by their hashes, hold the same records; False where that is not known."""
        return mark == other or (self.content(mark) or mark) == (self.content(other) or other)


def publish(folder: Path, outputs: Mapping[str, str]) -> None:
    """Copy a stored training's files to their output paths, run.json last.

    It copies, since an output may be changed and the store must not.

    Raises:
        StudyError: the disk is full, or the folder cannot be written to.
    """
    for path in sorted(outputs.values(), key=lambda path: os.path.basename(path) == "run.json"):
        with atomic(path, private=True, durable=True) as temporary:
            shutil.copyfile(folder / os.path.basename(path), temporary)
