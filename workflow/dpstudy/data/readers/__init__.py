"""The registry of readers: a name in the config's `reader` key, and the module that reads that format."""

import importlib
from pathlib import Path

from dpstudy.data.extra import enlarge
from dpstudy.data.reader import Reader
from dpstudy.errors import StudyError

READERS = {
    "digits": "dpstudy.data.readers.digits",
    "idx": "dpstudy.data.readers.idx",
    "cifar": "dpstudy.data.readers.cifar",
    "mosaics": "dpstudy.data.readers.mosaics",
    "image_folder": "dpstudy.data.readers.image_folder",
    "image_table": "dpstudy.data.readers.image_table",
    "imagenet": "dpstudy.data.readers.imagenet",
    "imagenet32": "dpstudy.data.readers.imagenet32",
    "places365": "dpstudy.data.readers.places365",
    "chexpert": "dpstudy.data.readers.chexpert",
    "nih": "dpstudy.data.readers.nih",
    "labels": "dpstudy.data.readers.labels",
    "arrays": "dpstudy.data.readers.arrays",
    "glyphs": "dpstudy.data.readers.glyphs",
    "dead_leaves": "dpstudy.data.readers.dead_leaves",
    "strokes": "dpstudy.data.readers.strokes",
    "cutouts": "dpstudy.data.readers.cutouts",
    "scenes": "dpstudy.data.readers.scenes",
}
_OFFERED = ("classes", "multi_label", "pools", "rows", "read")
CROPPING = ("imagenet", "places365")  # where the option `resize` is absent


def open_reader(name: str | None, options: dict, data_root: Path) -> Reader:
    """Open a data set with the reader called `name`, enlarged by the source `extra` where its entry has one.

    Args:
        options: the data set's entry in the config.
        data_root: the folder that `location` is relative to.

    Raises:
        StudyError: there is no such reader, the data are missing or damaged, `extra` does not fit them, or what the
            reader's module opens is no reader.
    """
    if name not in READERS:
        raise StudyError(f"reader {name!r} does not exist; there are {', '.join(sorted(READERS))}")
    reader = importlib.import_module(READERS[name]).open(options, Path(data_root))
    if lacking := [part for part in _OFFERED if not hasattr(reader, part)]:
        raise StudyError(
            f"reader {name!r}: what its `open` gives back, {type(reader).__name__}, has no {' and no '.join(lacking)}; "
            "data/reader.py says what a reader offers"
        )
    if "extra" not in options:
        return reader
    extra = {"classes": reader.classes} | options["extra"]
    return enlarge(reader, open_reader(extra["reader"], extra, data_root), extra.get("records"))
