"""Images in one sub-folder per class, optionally inside two folders named train and test.

Classes are the folders' names, sorted, or those that the config names: it must where noise is secure, since names read
off private folders depend on private records. Hidden files and what systems leave behind (Thumbs.db, __MACOSX) are
passed over; any other file must be an image. An image's id is its path below the location, so it keeps its place in the
splits when other images come or go.

The two folders may be called Train, training, testing and the like; without a test folder, val (valid, validation) is
the split test, as of ImageNet.
"""

import os
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion
from dpstudy.core.text import composed
from dpstudy.data.image_files import SUFFIXES, is_image_file
from dpstudy.data.listed import ListedImages, Listing
from dpstudy.data.reader import IMAGE_FILES, Declared, Reader, Rows
from dpstudy.data.records import Records
from dpstudy.data.source import class_names, is_leftover, location

READER = Declared(keys=("location", "classes", *IMAGE_FILES), own=True)

_LISTED = 8  # classes that a message names
_TABLE = "or list the images in a table (reader: image_table), which also says whose each is"
_POOLS = {
    "train": ("train", "training"),
    "test": ("test", "testing"),
    "validation": ("val", "valid", "validation", "dev"),
}


def open(options: dict, data_root: Path) -> Reader:
    """List the images below `location`.

    Options: `size` and `channels` (to resize and convert), `resize` (stretch or crop), `frame`, `max_pixels`, `classes`
    (to fix the label order).

    Raises:
        StudyError: there are no classes or no images, a file is no image, folders lie where none may, or train and test
            differ in classes.
    """
    folder = location(options, data_root)
    roots = _pools(folder)
    folders = {pool: _folders(root) for pool, root in roots.items()}
    classes = class_names(options, list(next(iter(folders.values()))))
    for pool, root in roots.items():
        if difference := set(folders[pool]) ^ set(classes):
            raise StudyError(f"{root}: {_misfit(min(difference), difference, classes)}")
    listings = {pool: _listing(folder, root, [folders[pool][name] for name in classes]) for pool, root in roots.items()}
    return _Folders(listings, classes, options)


def _pools(folder: Path) -> dict[str, Path]:
    """The folder of each pool: train and test, or all.

    Raises:
        StudyError: beside them stands a folder, of which nobody knows what it is.
    """
    names = _folders(folder)
    kinds = {kind: [name for name in names if name.casefold() in known] for kind, known in _POOLS.items()}
    others = sorted(set(names).difference(*kinds.values()))
    if not kinds["train"] or not (kinds["test"] or kinds["validation"]):
        return {"all": folder}
    train = folder / names[kinds["train"][0]]
    if others and not any(entry.is_dir() for entry in os.scandir(train)):  # a class, of trains
        return {"all": folder}
    several = next((few for few in kinds.values() if len(few) > 1), None)
    if several:
        raise StudyError(f"{folder}: of the folders {' and '.join(several)} only one may stand there; merge them")
    if kinds["test"] and kinds["validation"]:
        raise StudyError(
            f"{folder}: beside train and test stands the folder {kinds['validation'][0]!r}; records for choosing are "
            "cut from train (`splits: {validation: 0.1}`): move its images into the train folder, or take it away"
        )
    test = folder / names[(kinds["test"] or kinds["validation"])[0]]
    if others:
        raise StudyError(
            f"{folder}: beside {train.name} and {test.name} stands the folder {others[0]!r}; only these two may stand "
            "there: move it elsewhere"
        )
    return {"train": train, "test": test}


def _misfit(name: str, difference: set[str], classes: list[str]) -> str:
    """What is wrong with a class without a folder, or a folder without a class."""
    near = suggestion(name, difference - {name})
    if name in classes:
        return f"the class {name!r} has no folder here{near}; make one, or mend `classes`"
    listed = ", ".join(classes[:_LISTED]) + (", ..." if len(classes) > _LISTED else "")
    return f"the folder {name!r} is none of the classes {listed}{near}; rename it, or mend `classes`"


class _Folders(ListedImages):
    def __init__(self, listings: dict[str, Listing], classes: list[str], options: dict):
        super().__init__(listings, classes, options)
        self._rows = {
            pool: Rows(listing.ids, files=[listing.folder / name for name in listing.ids])
            for pool, listing in listings.items()
        }

    def rows(self, pool: str) -> Rows:
        return self._rows[pool]

    def known(self, pool: str) -> Records:
        """What the folders say of each row."""
        return Records(self._listings[pool].ids, None, self._listings[pool].labels)


def _folders(folder: Path) -> dict[str, str]:
    """The visible sub-folders, sorted by name: the name in composed Unicode -> as it is on disk."""
    entries = [entry for entry in os.scandir(folder) if not is_leftover(entry.name)]
    stray = sorted(entry.name for entry in entries if not entry.is_dir())
    if stray:
        where = f"into one, {_TABLE}" if is_image_file(folder / stray[0]) else "elsewhere"
        raise StudyError(f"{folder / stray[0]}: a file where only one folder a class may stand; move it {where}")
    if not entries:
        raise StudyError(f"{folder}: no sub-folder; it must hold one a class")
    folders: dict[str, str] = {}
    for name in sorted(entry.name for entry in entries):
        if composed(name) in folders:
            raise StudyError(f"{folder}: two folders are called {name!r}, in two Unicode forms; merge them")
        folders[composed(name)] = name
    return folders


def _listing(folder: Path, root: Path, folders: list[str]) -> Listing:
    """Every image, ordered by class and then by name."""
    ids, labels = [], []
    for label, name in enumerate(folders):
        listing = sorted(
            (each for each in os.scandir(root / name) if not is_leftover(each.name)), key=lambda each: each.name
        )
        entries, inner = [each.name for each in listing], [each.name for each in listing if each.is_dir()]
        if inner and len(inner) == len(entries):
            raise StudyError(
                f"{root / name}: holds folders ({', '.join(inner[:_LISTED])}) and no image; if these are the classes, "
                f"or train and test, let `location` name the folder that holds them; else move the images up, {_TABLE}"
            )
        for entry in entries:
            if not entry.isprintable():  # a name that is not UTF-8 has no id
                raise StudyError(f"{root / name}: the file name {entry!r} holds unprintable characters; rename it")
            if entry in inner:
                raise StudyError(
                    f"{root / name / entry}: a folder in the folder of a class; move its images up, {_TABLE}"
                )
            if not is_image_file(root / name / entry):
                raise StudyError(
                    f"{root / name / entry}: not an image; a class folder holds {' '.join(SUFFIXES)}, and DICOM files "
                    "whatever they are called"
                )
            ids.append((root / name / entry).relative_to(folder).as_posix())
            labels.append(label)
    if not ids:
        raise StudyError(f"{root}: no image in any of its class folders")
    return Listing(np.array(ids, dtype=object), folder, np.array(labels, np.int32))
