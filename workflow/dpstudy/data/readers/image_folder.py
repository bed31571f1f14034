"""Images in one sub-folder a class, optionally below two folders named train and test.

Classes are the folders' names, sorted, or those that the config names: it must where noise is secure, since names read
off private folders depend on private records. Hidden files are passed over; any other file must be an image. An image's
id is its path below the location, so it keeps its place in the splits when other images come or go.
"""

import os
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion
from dpstudy.data.images import decode_all, image_options
from dpstudy.data.reader import Reader, Rows
from dpstudy.data.records import Records
from dpstudy.data.source import class_names, location

_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff")
_LISTED = 8  # classes that a message names
_POOLS = ("train", "test")


def open(options: dict, data_root: Path) -> Reader:
    """List the images below `location`.

    Options: `size` and `channels` (to resize and convert), `resize` (stretch or crop), `classes` (to fix the label
    order).

    Raises:
        StudyError: there are no classes or no images, a file is no image, or train and test differ in classes.
    """
    folder = location(options, data_root)
    names = _folders(folder)
    pools = _POOLS if set(names) == set(_POOLS) else ("all",)
    if pools == ("all",) and set(_POOLS) < set(names):
        other = min(set(names) - set(_POOLS))
        raise StudyError(f"{folder}: beside train and test stands the folder {other!r}; only these two may stand there")
    roots = {pool: folder if pool == "all" else folder / pool for pool in pools}
    found = {pool: _folders(root) for pool, root in roots.items()}
    classes = class_names(options, found[pools[0]])
    for pool, root in roots.items():
        if difference := set(found[pool]) ^ set(classes):
            raise StudyError(f"{root}: {_misfit(min(difference), difference, classes)}")
    return _Folders(folder, {pool: _files(root, classes) for pool, root in roots.items()}, classes, options)


def _misfit(name: str, difference: set[str], classes: list[str]) -> str:
    """What is wrong with a class without a folder, or a folder without a class."""
    near = suggestion(name, difference - {name})
    if name in classes:
        return f"the class {name!r} has no folder here{near}; make one, or mend `classes`"
    listed = ", ".join(classes[:_LISTED]) + (", ..." if len(classes) > _LISTED else "")
    return f"the folder {name!r} is none of the classes {listed}{near}; rename it, or mend `classes`"


class _Folders:
    multi_label = False

    def __init__(self, folder: Path, files: dict[str, list[tuple[Path, int]]], classes: list[str], options: dict):
        self.classes, self.pools = classes, tuple(files)
        self._decoding = image_options(options)
        self._files = files
        self._ids = {
            pool: np.array([path.relative_to(folder).as_posix() for path, _ in rows], dtype=object)
            for pool, rows in files.items()
        }

    def rows(self, pool: str) -> Rows:
        return Rows(self._ids[pool], files=[path for path, _ in self._files[pool]])

    def read(self, pool: str, indices: np.ndarray) -> Records:
        rows = [self._files[pool][index] for index in indices]
        where = [f"row {index} of {pool}" for index in indices]
        images = decode_all([path for path, _ in rows], where, **self._decoding)
        return Records(self._ids[pool][indices], images, np.array([label for _, label in rows], np.int32))


def _folders(folder: Path) -> list[str]:
    """The visible sub-folders, sorted by name."""
    entries = [entry for entry in os.scandir(folder) if not entry.name.startswith(".")]
    stray = sorted(entry.name for entry in entries if not entry.is_dir())
    if stray:
        raise StudyError(f"{folder / stray[0]}: a file where only one folder a class may stand")
    if not entries:
        raise StudyError(f"{folder}: no sub-folder; it must hold one a class")
    return sorted(entry.name for entry in entries)


def _files(root: Path, classes: list[str]) -> list[tuple[Path, int]]:
    """(path, label) of every image, ordered by class and then by name."""
    rows = []
    for label, name in enumerate(classes):
        entries = sorted(os.listdir(root / name))
        for entry in (entry for entry in entries if not entry.startswith(".")):
            if not entry.isprintable():  # a name that is not UTF-8 has no id
                raise StudyError(f"{root / name}: the file name {entry!r} holds unprintable characters; rename it")
            if not entry.lower().endswith(_SUFFIXES):
                raise StudyError(f"{root / name / entry}: not an image; a class folder holds {' '.join(_SUFFIXES)}")
            rows.append((root / name / entry, label))
    if not rows:
        raise StudyError(f"{root}: no image in any of its class folders")
    return rows
