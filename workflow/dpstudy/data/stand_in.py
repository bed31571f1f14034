"""A synthetic data set for rehearsals, with as many images and subjects as the user's own.

Labels and groups are dealt anew among the rows, and persons and files have other names, so that nothing of a record
stays together; how often each label and group occurs, and how many images persons have, is as in the data set itself.
"""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.image_files import GREY_MODES, opened
from dpstudy.data.names import COUNTED
from dpstudy.data.reader import Reader
from dpstudy.data.readers import open_own
from dpstudy.data.records import Records, concatenate
from dpstudy.data.windows import window_of

TABLE = "table.csv"
# keys of an entry that do not say how its files are read
_KEPT = (*COUNTED, *"test_split sum_jobs not_accounted shards splits size channels resize".split())
_PATH, _LABEL, _PERSON = "drawn image", "drawn label", "drawn person"
_BLOB = 8  # pixels: as wide is what is drawn


def write_stand_in(options: dict, data_root: Path, folder: Path, rng: np.random.Generator) -> dict[str, Any]:
    """Write a table of random images that stands in for a data set; its config entry, without `location`.

    Args:
        options: the data set's entry, with a reader that has `known`. No pixel of its images is read, where the entry
            has their `size`.
        folder: to be made.

    Raises:
        StudyError: its table or files have a mistake, or its reader cannot be stood in for.
    """
    reader = open_own(options, data_root)
    if not hasattr(reader, "known"):
        raise StudyError(f"reader {options['reader']!r}: its records cannot be stood in for by drawn ones")
    pools = {pool: reader.known(pool) for pool in reader.pools}
    records = concatenate(list(pools.values()))
    height, width, channels = _shape(options, reader)
    folder.mkdir(parents=True)
    entry: dict[str, Any] = {key: options[key] for key in _KEPT if key in options}
    entry |= {"reader": "image_table", "table": TABLE, "path_column": _PATH, "size": [height, width]}
    entry |= {"channels": channels, "classes": reader.classes}
    findings = [f"{_LABEL}: {name}" for name in reader.classes]
    entry |= {"label_columns": findings} if records.multi_label else {"label_column": _LABEL}
    if records.subjects is not None:
        entry["subject_column"] = _PERSON
    if records.groups:
        entry["group_columns"] = list(records.groups)  # as tables and figures call them
    if "test" in pools and not (options.get("splits") or {}).get("test"):
        entry["splits"] = (options.get("splits") or {}) | {"test": round(len(pools["test"]) / len(records), 6)}
    _write_table(folder / TABLE, records, reader.classes, rng)
    for row in range(len(records)):
        _draw(folder / f"{row}.png", (height, width, channels), rng)
    return entry


def _shape(options: dict, reader: Reader) -> tuple[int, int, int]:
    """(H, W, C) of what is drawn: what images are brought to, or what the first of them has."""
    size, channels = options.get("size") or options.get("tile"), options.get("channels")
    if size is None or channels is None:
        rows = reader.rows(reader.pools[0])
        if rows.files:
            settings = options.get("frame"), options.get("max_pixels"), window_of(options)
            with opened(rows.files[0], "the first image", *settings) as image:
                shape = (image.height, image.width, 1 if image.mode in GREY_MODES else 3)
        else:
            images = reader.read(reader.pools[0], np.zeros(1, np.int64)).images
            if images is None:
                raise StudyError(f"reader {options['reader']!r}: its records have no images to stand in for")
            shape = images.shape[1:]
        size, channels = size or shape[:2], channels or shape[2]
    return int(size[0]), int(size[1]), int(channels)


def _write_table(path: Path, records: Records, classes: list[str], rng: np.random.Generator) -> None:
    labels = records.labels[rng.permutation(len(records))]
    columns: dict[str, Any] = {_PATH: [f"{row}.png" for row in range(len(records))]}
    if records.multi_label:
        columns |= {f"{_LABEL}: {name}": labels[:, place].tolist() for place, name in enumerate(classes)}
    else:
        columns[_LABEL] = [classes[label] for label in labels]
    if records.subjects is not None:
        _, owners = np.unique(records.subjects.astype(str), return_inverse=True)
        columns[_PERSON] = [f"person {owner}" for owner in rng.permutation(owners.max() + 1)[owners]]
    for name, values in records.groups.items():
        columns[name] = values[rng.permutation(len(records))].tolist()
    with open(path, "w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(columns)
        lines.writerows(zip(*columns.values(), strict=True))


def _draw(path: Path, shape: tuple[int, int, int], rng: np.random.Generator) -> None:
    from PIL import Image

    height, width, channels = shape
    coarse = rng.integers(0, 256, (height // _BLOB + 2, width // _BLOB + 2, channels)).astype(np.uint8)
    image = Image.fromarray(coarse[..., 0] if channels == 1 else coarse)
    image.resize((width, height), Image.Resampling.BILINEAR).save(path)
