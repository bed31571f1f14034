"""Features that the user supplies: {split}.npy with rows in the data set's order, or {split}.parquet with ids."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from dpstudy.core.errors import StudyError
from dpstudy.core.files import column_values, read_table
from dpstudy.core.npy import map_npy


def read_rows(folder: str | os.PathLike, split: str, ids: list[str], start: int, stop: int) -> np.ndarray:
    """Features (stop - start, d), float, of rows `start` to `stop` - 1 of a split.

    Args:
        folder: holds {split}.parquet (columns `id` and `features`, any order) or {split}.npy ((n, d), row order).
        ids: all n ids of the split, in row order.

    Raises:
        StudyError: the file is missing or damaged, an id is missing, unknown or stands twice, the number of rows is
            another, or the features are not floating-point numbers of one length.
    """
    table, array = Path(folder) / f"{split}.parquet", Path(folder) / f"{split}.npy"
    if table.exists() and array.exists():
        raise StudyError(f"{folder}: both {table.name} and {array.name} are there; keep one")
    if table.exists():
        return _from_table(table, ids, start, stop)
    if array.exists():
        return _from_array(array, len(ids), start, stop)
    raise StudyError(f"{folder}: neither {table.name} nor {array.name} is there; put the features of this split there")


def _from_array(path: Path, rows: int, start: int, stop: int) -> np.ndarray:
    features = map_npy(path)
    if features.ndim != 2:
        raise StudyError(f"{path}: features have shape {features.shape}; they must be (rows, dimensions)")
    if len(features) != rows:
        raise StudyError(f"{path}: {len(features)} rows, but the split has {rows} records")
    return _floats(np.array(features[start:stop]), path)


def _from_table(path: Path, ids: list[str], start: int, stop: int) -> np.ndarray:
    table = read_table(path)
    for column in ("id", "features"):
        if column not in table.column_names:
            raise StudyError(f"{path}: no column {column!r}; it needs `id` and `features`")
    names = [str(name) for name in column_values(path, table, "id")]
    places = {name: row for row, name in enumerate(names)}
    if len(places) < len(names):
        twice = next(name for row, name in enumerate(names) if places[name] != row)
        raise StudyError(f"{path}: the id {twice!r} stands twice; ids must be unique")
    unknown = places.keys() - set(ids)
    if unknown:
        raise StudyError(f"{path}: the id {min(unknown)!r} is not in this split of the data set")
    missing = next((name for name in ids if name not in places), None)
    if missing is not None:
        raise StudyError(f"{path}: no features for the id {missing!r}; every record of the split needs a row")
    return _floats(_matrix(table.column("features"), [places[name] for name in ids[start:stop]], path), path)


def _matrix(column: pa.ChunkedArray, rows: list[int], path: Path) -> np.ndarray:
    if not (pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type)):
        raise StudyError(f"{path}: the column `features` is {column.type}; it must hold a list of numbers a row")
    if column.null_count:
        raise StudyError(f"{path}: row {column.is_null().to_pylist().index(True)} has no features")
    lengths = compute.list_value_length(column).to_numpy()
    odd = np.flatnonzero(lengths != lengths[0])
    if len(odd):
        raise StudyError(f"{path}: row {odd[0]} has {lengths[odd[0]]} features, row 0 has {lengths[0]}")
    values = column.take(pa.array(rows)).combine_chunks().flatten()
    return values.to_numpy(zero_copy_only=False).reshape(len(rows), lengths[0])


def _floats(features: np.ndarray, path: Path) -> np.ndarray:
    if features.dtype.kind != "f":
        raise StudyError(f"{path}: features are {features.dtype}; they must be floating-point numbers")
    if not features.shape[1]:
        raise StudyError(f"{path}: its rows hold no number; each needs the features of its record")
    return features
