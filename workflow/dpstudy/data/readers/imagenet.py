"""ImageNet as folders: `train/` and `val/`, each with a sub-folder per class (n01440764, ...).

Classes are the folders' names, sorted, which is the label order of timm's and torchvision's networks. `val` serves as
the split test.
"""

import os
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.listed import ListedImages, Listing, sized_location
from dpstudy.data.reader import IMAGE_FILES, Declared, Reader
from dpstudy.data.source import class_names, is_leftover

READER = Declared(keys=("location", "classes", *IMAGE_FILES), shape=(None, None, 3), crops=True)

_POOLS = {"train": "train", "test": "val"}
_SUFFIXES = (".jpeg", ".jpg", ".png")


def open(options: dict, data_root: Path) -> Reader:
    """List the images below `location`.

    Options: `size` (needed), `channels`, `resize` (crop where absent: the middle, with its aspect kept), `classes`.

    Raises:
        StudyError: a folder is missing, holds no image or something else, or train and val differ in classes.
    """
    folder = sized_location("imagenet", options, data_root)
    classes = class_names(options, _classes(folder / "train"))
    listings = {pool: _list(folder, name, classes) for pool, name in _POOLS.items()}
    return ListedImages(listings, classes, {"channels": 3} | options, "crop")


def _classes(folder: Path) -> list[str]:
    try:
        entries = [entry for entry in os.scandir(folder) if not is_leftover(entry.name)]
    except FileNotFoundError:
        raise StudyError(
            f"{folder}: no such folder; ImageNet needs train/ and val/, a sub-folder a class in each"
        ) from None
    stray = sorted(entry.name for entry in entries if not entry.is_dir())
    if stray:
        raise StudyError(
            f"{folder / stray[0]}: a file where only one folder a class may stand; move it into its class's"
        )
    return sorted(entry.name for entry in entries)


def _list(folder: Path, name: str, classes: list[str]) -> Listing:
    difference = set(_classes(folder / name)) ^ set(classes)
    if difference:
        raise StudyError(
            f"{folder / name}: the class {min(difference)!r} stands in only one of this folder and the classes"
        )
    ids, labels = [], []
    for label, kind in enumerate(classes):
        files = sorted(entry for entry in os.listdir(folder / name / kind) if not is_leftover(entry))
        wrong = next((entry for entry in files if not entry.lower().endswith(_SUFFIXES)), None)
        if wrong is not None:
            raise StudyError(
                f"{folder / name / kind / wrong}: not an image; a class folder holds {' '.join(_SUFFIXES)}"
            )
        ids += [f"{name}/{kind}/{file}" for file in files]
        labels += [label] * len(files)
    return Listing(np.array(ids, dtype=object), folder, np.array(labels, np.int32))
