"""Lines of budget logs: what each must have, which of them are one training, and which records they are about.

In memory a line's "folders" are absolute; beside the data they stand relative to the log (data_book.py).
"""

import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dpstudy.core.errors import StudyError

_KEYS = {"when": str, "dataset": str, "cell": str, "seed": int, "ledger": dict}  # that every line has
_MORE = {"records": str, "files": dict, "config": str, "training": str, "failed": str, "ids": str, "id": str}
_MORE |= {"folders": list}
_COUNTED = {"unit": str, "guarantee": str, "delta": float, "events": list}  # of a line's ledger


def read_lines(path: Path, remedy: str = "let it be read") -> Iterator[dict]:
    """The lines of a budget log, from the first; none where there is no file.

    Args:
        remedy: what would help where it cannot be read.

    Raises:
        StudyError: it cannot be read, or a line is damaged, or no entry.
    """
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:  # such as another user's
        raise StudyError(
            f"{path}: cannot be read ({error.strerror}), and what was spent is written down there; {remedy}"
        ) from None
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            yield _entry(line)
        except (ValueError, RecursionError) as error:  # ValueError: not UTF-8, not JSON, a giant number
            why = str(error) if isinstance(error, _NoEntryError) else "it is not JSON"
            raise StudyError(
                f"{path}: line {number} is damaged ({why}); nobody can tell what was spent. Mend it by hand"
            ) from None


class _NoEntryError(ValueError):
    """A line that is JSON, and no entry of the book."""


def _entry(line: bytes) -> dict:
    entry = json.loads(line)
    _check_types(entry, _KEYS, _MORE, "the line")
    _check_types(entry["ledger"], _COUNTED, {}, "its ledger")
    if not all(isinstance(folder, str) for folder in entry.get("folders", ())):
        raise _NoEntryError("'folders' of the line are not all of the type 'str'")
    return entry


def _check_types(content: object, needed: Mapping[str, type], more: Mapping[str, type], what: str) -> None:
    if not isinstance(content, dict):
        raise _NoEntryError(f"{what} is no entry")
    if missing := [key for key in needed if key not in content]:
        raise _NoEntryError(f"{what} lacks {missing[0]!r}")
    for key, kind in {**needed, **more}.items():
        kinds = (int, float) if kind is float else kind
        if key in content and (not isinstance(content[key], kinds) or isinstance(content[key], bool)):
            raise _NoEntryError(f"{key!r} of {what} is not of the type {kind.__name__!r}")


def identity(entry: Mapping) -> str:
    """The unique id of a line of a budget log; for lines of earlier versions, a hash of the line."""
    return entry.get("id") or hashlib.sha256(json.dumps(dict(entry), sort_keys=True).encode()).hexdigest()


def is_begun(entry: Mapping) -> bool:
    """Whether a line was written at a training's first checkpoint, or when it failed, rather than at its end."""
    return "training" in entry and "files" not in entry


def has_failed(entry: Mapping) -> bool:
    """Whether a line is of a training that failed after noise was drawn."""
    return "failed" in entry


def of_trainings(entries: Sequence[dict]) -> list[dict]:
    """One line per training: of one that was begun and has ended, the line written at its end."""
    over = {_training(entry) for entry in entries if has_failed(entry) or not is_begun(entry)}
    return [entry for entry in entries if has_failed(entry) or not (is_begun(entry) and _training(entry) in over)]


def _training(entry: Mapping) -> tuple:
    return entry["cell"], entry["seed"], entry.get("training")


def names_of(read: Sequence[str | os.PathLike], around: Sequence[str | os.PathLike]) -> str:
    """The names of records (locations.records_of) that lie in folders, with others around these."""
    inner, outer = ("+".join(_name(str(path)) for path in paths) for paths in (read, around))
    return f"{inner}<{outer}" if outer else inner


@functools.lru_cache(maxsize=10_000)
def _name(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:16]


def parents_of(folders: Sequence[Path]) -> list[Path]:
    """Each folder around any of these, once."""
    return list(dict.fromkeys(parent for folder in folders for parent in folder.parents))


def about(entry: Mapping, dataset: str, records: str | None) -> bool:
    """Whether a line may concern some of these records (locations.records_of).

    It does if the same folder was read, or one around the other, under the path that it had then or that it has now,
    as seen from the log beside it; and if that folder is not found (`is_lost`), since it may be this one. Old lines
    know no folders around, or the data set's name alone.
    """
    return bool(entry.get("lost")) or is_known(entry, dataset, records)


def is_known(entry: Mapping, dataset: str, records: str | None) -> bool:
    """Whether a line names some of these records, or folders of theirs."""
    if not (entry.get("records") and records):
        return entry["dataset"] == dataset
    folders = list(map(Path, entry.get("folders", ())))
    return any(_overlap(one, records) for one in (entry["records"], names_of(folders, parents_of(folders))) if one)


def with_folders(entry: dict, other: Mapping | None) -> dict:
    """A line with the folders too that it names in another log; for it was copied there."""
    if other is None or "folders" not in entry:
        return entry
    return entry | {"folders": list(dict.fromkeys([*other.get("folders", ()), *entry["folders"]]))}


def _overlap(one: str, records: str) -> bool:
    (read, around), (other, around_other) = map(_names, (one, records))
    return not (read.isdisjoint(other | around_other) and around.isdisjoint(other))


def _names(records: str) -> tuple[set[str], set[str]]:
    """Names of the folders that are read, and of those around them."""
    read, _, around = records.partition("<")
    return set(read.split("+")), set(around.split("+")) - {""}


def first_name(records: str) -> str:
    """The first of the names: of the folder that is read first, and its reader."""
    return records.partition("<")[0].partition("+")[0]


def is_lost(entry: Mapping, log_folder: Path) -> bool:
    """Whether nobody can tell which records a line is about: a folder that it read was moved, renamed or removed since.

    A line without "folders" is of an earlier version; one that names the log's folder was written where the log lies.

    Args:
        log_folder: where the log lies in which the line stands.
    """
    if "folders" in entry:
        return not all(map(os.path.exists, entry["folders"]))
    return _name(str(log_folder)) not in set().union(*_names(entry.get("records", "")))


def lost_in_words(entries: Sequence[Mapping], dataset: str, records: str) -> str:
    """What to know of lines that count because their folder is not found; "" where there are none."""
    lost = [entry for entry in entries if entry.get("lost") and not is_known(entry, dataset, records)]
    if not lost:
        return ""
    return (
        f"; {in_words(lost)} in the budget log, whose folder is not where it was, count since these records may have "
        "lain there: if others did, write release: {accept: [other_records]}"
    )


def in_words(entries: Sequence[Mapping]) -> str:
    """How many trainings, and of which data sets."""
    names = ", ".join(sorted({repr(entry["dataset"]) for entry in entries}))
    return f"{len(entries)} training{'s' if len(entries) > 1 else ''} of {names}"
