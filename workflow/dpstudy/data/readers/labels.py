"""Labels without images, for data sets whose features the user supplies.

In `location` stand `{split}_labels.npy`, (n,) class indices or (n, m) zeros and ones, or `{split}.parquet` with the
column `label` (class indices, or names as strings) or `labels` (lists of 0/1) and optionally `id`, `subject` and
`group_*`. The splits are train and test, or all.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from dpstudy.core.errors import StudyError
from dpstudy.core.files import column_values, read_table
from dpstudy.core.npy import read_npy
from dpstudy.data.reader import Declared, Reader, Rows
from dpstudy.data.records import Records
from dpstudy.data.source import check_unique, class_names, location, multi_labels, single_labels
from dpstudy.data.table import WRITE_ANEW, read_text_table

READER = Declared(keys=("location", "classes"), own=True, numbered=True)

_GROUP = "group_"


def open(options: dict, data_root: Path) -> Reader:
    """Open the label files in `location`.

    Options: `classes` (a list, or their number; default: the lines of classes.txt).

    Raises:
        StudyError: files are missing or damaged, a label is out of range, or an id stands twice.
    """
    folder = location(options, data_root)
    classes = class_names(options, file=folder / "classes.txt")
    pools = ("all",) if _file(folder, "all") else ("train", "test")
    files = {}
    for pool in pools:
        file = _file(folder, pool)
        if file is None:
            raise StudyError(f"{folder / pool}_labels.npy: no such file, nor {pool}.parquet")
        files[pool] = file
    return _Labels({pool: _read(file, pool, classes) for pool, file in files.items()}, classes, folder)


class _Labels:
    def __init__(self, records: dict[str, Records], classes: list[str], folder: Path):
        self.classes, self.pools = classes, tuple(records)
        kinds = {(pool.multi_label, pool.subjects is None, tuple(pool.groups)) for pool in records.values()}
        if len(kinds) > 1:
            raise StudyError(f"{folder}: train and test differ in the kind of labels, or in subject or group columns")
        self.multi_label = records[self.pools[0]].multi_label
        self._records = records

    def rows(self, pool: str) -> Rows:
        return Rows(self._records[pool].ids, self._records[pool].subjects)

    def read(self, pool: str, indices: np.ndarray) -> Records:
        return self._records[pool].take(indices)


def _file(folder: Path, pool: str) -> Path | None:
    return next((file for file in (folder / f"{pool}_labels.npy", folder / f"{pool}.parquet") if file.exists()), None)


def _read(file: Path, pool: str, classes: list[str]) -> Records:
    ids, subjects, groups = None, None, {}
    if file.suffix == ".npy":
        labels = read_npy(file)
    else:
        raw = read_table(file, remedy=WRITE_ANEW)
        wanted = [name for name in raw.column_names if name in ("id", "label", "subject") or name.startswith(_GROUP)]
        table = read_text_table(file, wanted)
        if "labels" in raw.column_names:
            labels = _matrix(file, column_values(file, raw, "labels"), classes)
        elif "label" in raw.column_names and pa.types.is_integer(raw.schema.field("label").type):
            labels = np.array([int(text) for text in table.column("label")])
        else:
            labels = table.class_indices("label", classes)
        ids = table.column("id") if "id" in table.columns else None
        subjects = table.subjects("subject") if "subject" in table.columns else None
        groups = {name.removeprefix(_GROUP): table.column(name) for name in wanted if name.startswith(_GROUP)}
    if labels.size == 0:
        raise StudyError(f"{file}: no rows")
    labels = multi_labels(labels, classes, str(file)) if labels.ndim == 2 else single_labels(labels, classes, str(file))
    # a number stays a record's name here: the features that are brought know it by no other (names.NUMBERED)
    ids = Rows.numbered(pool, len(labels)).ids if ids is None else ids
    check_unique(ids, str(file))
    return Records(ids, None, labels, subjects, groups)


def _matrix(file: Path, rows: list, classes: list[str]) -> np.ndarray:
    for row, values in enumerate(rows):
        numbers = isinstance(values, list) and all(isinstance(value, int | float) for value in values)
        if not numbers or len(values) != len(classes):
            raise StudyError(f"{file}: row {row} has the labels {str(values)[:60]}, not {len(classes)} of 0 or 1")
    return np.array(rows)
