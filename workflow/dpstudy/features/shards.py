"""Feature shards: parquet files of fixed-size lists with the records' labels, and the manifest that vouches for them.

Shard i holds the same records, in the same order, as shard i of the images. The manifest holds the SHA-256 and the row
count of each shard, and every read checks both.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from dpstudy.core.columns import numbers, rows_of_numbers, strings, values_of
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_table, write_json, write_table
from dpstudy.data.shards import COUNTS
from dpstudy.features import plain

_MANIFEST_KEYS = (
    "dataset", "features", "split", "rows", "dim", "shape", "dtype", "classes", "multi_label", "columns", "private",
    "shards",
)  # fmt: skip
_GROUP = "group_"
_MADE_FROM = "made_from"
DTYPES = ("float16", "float32")


@dataclass(frozen=True)
class FeatureTable:
    """The features of n records; row i of every array belongs to the same record.

    Attributes:
        ids: (n,) strings.
        features: (n, d) float32 or float16, finite.
        labels: (n,) int32 class indices, or (n, m) int8 of 0 and 1.
        subjects: (n,) strings, or None.
        groups: name -> (n,) strings.
        counts: (n,) int32, how many records of the split are of the same subject, where they are averaged; or None.
        shape: the layout of the flattened d, (K, H, W) or (d,), in C order.
        classes: label names, in label order.
    """

    ids: np.ndarray
    features: np.ndarray
    labels: np.ndarray
    subjects: np.ndarray | None = None
    groups: dict[str, np.ndarray] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()
    counts: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, index: np.ndarray) -> FeatureTable:
        """The rows that `index` (integers, or a boolean mask over the rows) selects, in its order."""
        return replace(
            self,
            ids=self.ids[index],
            features=self.features[index],
            labels=self.labels[index],
            subjects=None if self.subjects is None else self.subjects[index],
            groups={name: values[index] for name, values in self.groups.items()},
            counts=None if self.counts is None else self.counts[index],
        )


def write_shard(
    path: str | os.PathLike, table: FeatureTable, private: bool, made_from: dict[str, str] | None = None
) -> None:
    """Write one shard; with `private`, readable by its owner alone.

    Args:
        made_from: what the features were computed with besides the config and the library, such as the hash of a
            network's weights; all shards of a split must have the same.
    """
    flat = numbers(table.features.reshape(-1), table.features.dtype.type)
    element = pa.field("element", flat.type, nullable=False)  # a quarter faster to read than nullable elements
    columns = {
        "id": strings(table.ids),
        "features": pa.FixedSizeListArray.from_arrays(flat, type=pa.list_(element, table.features.shape[1])),
    }
    if table.labels.ndim == 2:
        columns["labels"] = rows_of_numbers(table.labels, np.int8)
    else:
        columns["label"] = numbers(table.labels, np.int32)
    if table.subjects is not None:
        columns["subject"] = strings(table.subjects)
    if table.counts is not None:
        columns[COUNTS] = numbers(table.counts, np.int32)
    for name, values in table.groups.items():
        columns[_GROUP + name] = strings(values)
    metadata = {"shape": json.dumps(list(table.shape)), "dtype": str(table.features.dtype)}
    if made_from:
        metadata[_MADE_FROM] = json.dumps(made_from, sort_keys=True)
    written = pa.table(columns).replace_schema_metadata(metadata)
    write_table(path, written, private, **plain.layout(written, "features"))


def write_manifest(
    path: str | os.PathLike,
    *,
    dataset: str,
    features: str,
    split: str,
    shard_paths: list[str | os.PathLike],
    classes: list[str],
    private: bool,
) -> None:
    """Describe the finished shards of one split, in order.

    Raises:
        StudyError: there is no shard, one is missing or damaged, or they differ in columns, layout or type.
    """
    entries, schema, subjects = [], None, set()
    for shard in map(Path, shard_paths):
        entry, own, names = _described(shard)
        schema = schema or own
        if not own.equals(schema, check_metadata=True):
            raise StudyError(f"{shard}: its columns, layout, type or network differ from those of {shard_paths[0]}")
        subjects.update(names)
        entries.append(entry)
    if schema is None:
        raise StudyError(f"{path}: a manifest describes one shard at least, and there is none")
    columns = {column.name: str(column.type) for column in schema}
    manifest = {
        "dataset": dataset,
        "features": features,
        "split": split,
        "rows": sum(entry["rows"] for entry in entries),
        "subjects": len(subjects) if "subject" in columns else None,
        "dim": schema.field("features").type.list_size,
        "shape": json.loads(schema.metadata[b"shape"]),
        "dtype": schema.metadata[b"dtype"].decode(),
        "classes": list(classes),
        "multi_label": "labels" in columns,
        "columns": columns,
        "private": list(columns) if private else [],
        "shards": entries,
    }
    if made_from := schema.metadata.get(_MADE_FROM.encode()):
        manifest[_MADE_FROM] = json.loads(made_from)
    write_json(path, manifest, private)


def _described(shard: Path) -> tuple[dict, pa.Schema, list[str]]:
    """What a manifest says of a shard, the shard's schema, and whose its records are, where it says so; nothing of it
    stays in memory while the next is read."""
    content = _read_bytes(shard)
    table = read_table(shard, content=content)  # all of it: a manifest vouches for every page
    names = table.column("subject").to_pylist() if "subject" in table.column_names else []
    digest = hashlib.sha256(content).hexdigest()
    parts = [values_of(chunk.flatten()) for chunk in table.column("features").chunks]
    entry = {"file": shard.name, "rows": table.num_rows, "sha256": digest}
    return entry | {"runs": plain.locate(content, "features", parts)}, table.schema, names


def read_manifest(folder: str | os.PathLike) -> dict:
    """Read `folder`/manifest.json.

    Raises:
        StudyError: it is missing, damaged, or not the manifest of feature shards.
    """
    path = Path(folder) / "manifest.json"
    manifest = read_json(path)
    missing = [key for key in _MANIFEST_KEYS if not isinstance(manifest, dict) or key not in manifest]
    if missing:
        raise StudyError(f"{path}: no key {missing[0]!r}; delete the folder and run the study again")
    return manifest


def iterate(folder: str | os.PathLike, kept: Sequence[str | os.PathLike] = ()) -> Iterator[FeatureTable]:
    """The shards of `folder` one at a time, each checked against the manifest.

    Args:
        kept: the kept.parquet of de-duplications; rows that one of them does not list are left out.

    Raises:
        StudyError: a file is missing, damaged, or has changed since the manifest was written.
    """
    manifest = read_manifest(folder)
    keep = kept_ids(kept, manifest) if kept else None
    for entry in manifest["shards"]:
        table = _read_shard(Path(folder) / entry["file"], entry, manifest)
        yield table if keep is None else only(table, keep)


def load(folder: str | os.PathLike, kept: Sequence[str | os.PathLike] = ()) -> FeatureTable:
    """Every shard of `folder` put together in order, as `iterate` gives them.

    Raises:
        StudyError: as for `iterate`.
    """
    return concatenate(list(iterate(folder, kept)))


def only(table: FeatureTable, keep: set[str]) -> FeatureTable:
    """The rows whose ids are kept."""
    mask = np.fromiter((name in keep for name in table.ids), bool, len(table))
    return table if mask.all() else table.take(mask)


def concatenate(tables: list[FeatureTable]) -> FeatureTable:
    """Tables of one layout, one after the other."""
    if len(tables) == 1:
        return tables[0]
    first = tables[0]
    return replace(
        first,
        ids=np.concatenate([table.ids for table in tables]),
        features=np.concatenate([table.features for table in tables]),
        labels=np.concatenate([table.labels for table in tables]),
        subjects=None if first.subjects is None else np.concatenate([table.subjects for table in tables]),
        groups={name: np.concatenate([table.groups[name] for table in tables]) for name in first.groups},
        counts=None if first.counts is None else np.concatenate([table.counts for table in tables]),
    )


def kept_ids(kept: Sequence[str | os.PathLike], manifest: dict) -> set[str]:
    """The ids that every one of these de-duplications (at least one) kept of a manifest's data set and split.

    Raises:
        StudyError: a file is missing, damaged, or lacks a column.
    """
    return set.intersection(*(_kept_ids(path, manifest) for path in kept))


def _kept_ids(path: str | os.PathLike, manifest: dict) -> set[str]:
    table = read_table(path)
    missing = {"dataset", "split", "id"} - set(table.column_names)
    if missing:
        raise StudyError(f"{path}: no column {min(missing)!r}; delete it and run the study again")
    here = compute.and_(
        compute.equal(table["dataset"], manifest["dataset"]), compute.equal(table["split"], manifest["split"])
    )
    return set(table["id"].filter(here).to_pylist())


def label_column(manifest: dict) -> str:
    """The name of the column of labels."""
    return "labels" if manifest["multi_label"] else "label"


def features_of(table: pa.Table, manifest: dict) -> np.ndarray:
    """(rows, d) features of a shard's table."""
    return _flat(table, "features").reshape(table.num_rows, manifest["dim"])


def labels_of(table: pa.Table, manifest: dict) -> np.ndarray:
    """(rows,) int32 class indices or (rows, m) int8 zeros and ones of a shard's table."""
    if manifest["multi_label"]:
        return np.array(_flat(table, "labels"), np.int8).reshape(table.num_rows, len(manifest["classes"]))
    return np.array(values_of(table.column("label").combine_chunks()), np.int32)


def counts_of(table: pa.Table) -> np.ndarray:
    """(rows,) int32 numbers of records of a shard's subjects."""
    return np.array(values_of(table.column(COUNTS).combine_chunks()), np.int32)


def _read_shard(path: Path, entry: dict, manifest: dict) -> FeatureTable:
    content = _read_bytes(path)
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise StudyError(f"{path}: its SHA-256 differs from the manifest's; delete it and run the study again")
    table = read_table(path, content=content)
    if table.num_rows != entry["rows"]:
        raise StudyError(f"{path}: {table.num_rows} rows, but the manifest says {entry['rows']}")
    names = table.column_names
    return FeatureTable(
        ids=_strings(table, "id"),
        features=features_of(table, manifest),
        labels=labels_of(table, manifest),
        subjects=_strings(table, "subject") if "subject" in names else None,
        groups={name.removeprefix(_GROUP): _strings(table, name) for name in names if name.startswith(_GROUP)},
        counts=counts_of(table) if COUNTS in names else None,
        shape=tuple(manifest["shape"]),
        classes=tuple(manifest["classes"]),
    )


def _flat(table: pa.Table, column: str) -> np.ndarray:
    return values_of(table.column(column).combine_chunks().flatten())


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file") from None


def _strings(table: pa.Table, column: str) -> np.ndarray:
    return np.array(table.column(column).to_pylist(), dtype=object)
