"""Detects changes of the files of a user's own records since shards were made of them."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from dpstudy.core.by_name import opener
from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_sources
from dpstudy.data.source import files_of, is_leftover, on_disk


def state_of(options: dict, data_root: Path) -> str:
    """A hash of the names, sizes and modification times of the files of a data set's own records.

    It is among the parameters of the jobs that read them: a replaced, added or removed image makes these run again, as
    an edited table does. Nothing is opened but a table. "" where all records come from published benchmarks, whose
    files do not change. Where the files cannot be listed no two states are the same: the job that reads them is due,
    and says what is wrong.

    Args:
        options: the data set's entry in the config.
        data_root: the folder that `location` is relative to.
    """
    sources = [source for source in own_sources(options) if "location" in source]
    digest = hashlib.sha256()
    for source in sources:
        folder = on_disk(Path(data_root), source["location"])
        try:
            files = _files(source, folder, data_root)
        except (StudyError, OSError):  # not a state like any other: changes would hide behind it
            digest.update(os.urandom(16))
            continue
        if source is not options and source.get("table"):  # of the data set's own table its rule knows
            files = [*files, *files_of(folder, source["table"])]
        for file in files:
            try:
                seen = file.stat()
                state = f"{seen.st_size} {seen.st_mtime_ns}"
            except OSError:  # the option `unreadable` tolerates some unreadable files
                state = "absent"
            digest.update(os.fsencode(f"{file.relative_to(folder)}\0{state}\n"))
    return digest.hexdigest()[:16] if sources else ""


def _files(source: dict, folder: Path, data_root: Path) -> list[Path]:
    """The image files that a table names, by its paths alone; else all below the folder, or what lies in it.

    Where people's own records have no names, their few files lie in the folder itself, maybe among other data sets.
    """
    module = opener("dpstudy.data.readers", "reader", source["reader"])
    if hasattr(module, "files") and (files := module.files(source, data_root)):
        return files
    if not (module.READER.own and module.READER.numbered):
        return list(_below(folder, set()))
    beside = [folder / source["mosaic"]] if source.get("mosaic") else []
    return [*beside, *_visible(folder)]


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not is_leftover(path.name)) if folder.exists() else []


def _below(folder: Path, seen: set[Path]) -> Iterator[Path]:
    for path in [] if folder.resolve() in seen else _visible(folder):
        yield from _below(path, {*seen, folder.resolve()}) if path.is_dir() else [path]
