"""Places-365 (standard, 256 pixels): lists of paths and labels, and the images in `data_256/` and `val_256/`.

The lists are `places365_train_standard.txt`, `places365_val.txt` and `categories_places365.txt`. The validation images
serve as the split test.
"""

import re
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.listed import ListedImages, Listing, sized_location
from dpstudy.data.reader import IMAGE_FILES, Declared, Reader
from dpstudy.data.source import check_names, class_names, inside, read_text, single_labels

READER = Declared(keys=("location", "classes", *IMAGE_FILES), shape=(None, None, 3), crops=True)

_LISTS = {"train": ("places365_train_standard.txt", "data_256"), "test": ("places365_val.txt", "val_256")}
_CLASSES = "categories_places365.txt"
_LABEL = re.compile("[0-9]{1,9}")


def open(options: dict, data_root: Path) -> Reader:
    """List the images below `location`.

    Options: `size` (needed), `channels`, `resize` (crop where absent: the middle, with its aspect kept).

    Raises:
        StudyError: a list is missing, or a line is not a path and a label.
    """
    folder = sized_location("places365", options, data_root)
    names = [name.strip("/").split("/", 1)[-1] for name, _ in _lines(folder / _CLASSES)]
    check_names(names, str(folder / _CLASSES))
    classes = class_names(options, names)
    listings = {pool: _list(folder, *files, classes) for pool, files in _LISTS.items()}
    return ListedImages(listings, classes, {"channels": 3} | options, "crop")


def _list(folder: Path, name: str, images: str, classes: list[str]) -> Listing:
    lines = _lines(folder / name)
    paths = [
        inside(folder / images, path.lstrip("/"), f"{folder / name}: line {row + 1}")
        for row, (path, _) in enumerate(lines)
    ]
    ids = np.array([path.relative_to(folder).as_posix() for path in paths], dtype=object)
    labels = single_labels(np.array([label for _, label in lines], np.int64), classes, str(folder / name))
    return Listing(ids, folder, labels, str(folder / name))


def _lines(path: Path) -> list[tuple[str, int]]:
    pairs = []
    for row, line in enumerate(read_text(path).splitlines(), start=1):
        words = line.split()
        if len(words) != 2 or not _LABEL.fullmatch(words[1]):
            raise StudyError(f"{path}: line {row}: {line[:60]!r} is not a path and a label")
        pairs.append((words[0], int(words[1])))
    return pairs
