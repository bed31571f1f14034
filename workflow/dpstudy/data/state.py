"""Whether the files of a user's own records are those that shards were made of."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from dpstudy.data.own import own_data
from dpstudy.data.readers import open_reader
from dpstudy.errors import StudyError

UNREADABLE = "cannot be read"


def state_of(options: dict, data_root: Path) -> str:
    """A digest of the names, sizes and times of the files that a data set's own records lie in.

    It is among the parameters of the jobs that read them: a replaced, added or removed image makes these run again, as
    an edited table does. Nothing is opened but a table. "" where all records come from published benchmarks, whose
    files do not change; where the records cannot be read, a word, and the job that reads them will say why.

    Args:
        options: the data set's entry in the config.
        data_root: the folder that `location` is relative to.
    """
    sources = [source for source in (options, options.get("extra", {})) if own_data(source.get("reader"))]
    if not sources:
        return ""
    digest = hashlib.sha256()
    try:
        for source in sources:
            for file in _files({"classes": options.get("classes")} | source, data_root):
                seen = file.stat()
                digest.update(f"{file.relative_to(data_root)}\0{seen.st_size}\0{seen.st_mtime_ns}\n".encode())
    except (StudyError, OSError):
        return UNREADABLE
    return digest.hexdigest()[:16]


def _files(source: dict, data_root: Path) -> Iterator[Path]:
    """One for each image where each has a file of its own; else those of the folder."""
    options = {key: value for key, value in source.items() if key != "extra"}
    reader = open_reader(options["reader"], options, data_root)
    own = [file for pool in reader.pools for file in reader.rows(pool).files or ()]
    folder = Path(data_root) / options["location"]
    yield from own or sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
