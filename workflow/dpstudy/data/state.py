"""Detects changes of the files of a user's own records since shards were made of them."""

import hashlib
import os
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_sources
from dpstudy.data.readers import open_reader
from dpstudy.data.source import is_leftover, on_disk

_UNASKED = ("extra", "tags", "subject_column", "group_columns")


def state_of(options: dict, data_root: Path) -> str:
    """A hash of the names, sizes and modification times of the files of a data set's own records.

    It is among the parameters of the jobs that read them: a replaced, added or removed image makes these run again, as
    an edited table does. Nothing is opened but a table. "" where all records come from published benchmarks, whose
    files do not change. What is wrong with the records is not said here: the job that reads them will say it.

    Args:
        options: the data set's entry in the config.
        data_root: the folder that `location` is relative to.
    """
    sources = [source for source in own_sources(options) if "location" in source]
    digest = hashlib.sha256()
    for source in sources:
        folder = on_disk(Path(data_root), source["location"])
        for file in _files(source, folder, data_root):
            try:
                seen = file.stat()
                state = f"{seen.st_size} {seen.st_mtime_ns}"
            except OSError:  # the option `unreadable` tolerates some unreadable files
                state = "absent"
            digest.update(os.fsencode(f"{file.relative_to(folder)}\0{state}\n"))
    return digest.hexdigest()[:16] if sources else ""


def _files(source: dict, folder: Path, data_root: Path) -> list[Path]:
    """One for each image where each has a file of its own; else what lies in the folder, and the mosaic."""
    try:
        # of an image, neither what else is learned from nor its tags, for which each file would be opened
        asked = {key: value for key, value in source.items() if key not in _UNASKED}
        reader = open_reader(source["reader"], asked, data_root)
        files = [file for pool in reader.pools for file in reader.rows(pool).files or ()]
    except (StudyError, OSError):
        files = []
    if files:
        return files
    beside = [folder / source["mosaic"]] if source.get("mosaic") else []
    try:
        return [*beside, *sorted(path for path in folder.iterdir() if not is_leftover(path.name))]
    except OSError:
        return beside
