"""Feature shards: parquet files with a column of fixed-size lists, listed with their checksums in a manifest.

Shard i holds the same records, in the same order, as shard i of the images.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpstudy.core.columns import numbers, values_of
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json, write_table
from dpstudy.data import shards
from dpstudy.data.records import RecordTable, concatenate, only
from dpstudy.features import plain

_MANIFEST = (
    "dataset", "features", "split", "rows", "subjects", "dim", "shape", "dtype", "classes", "multi_label", "columns",
    "private", "shards",
)  # fmt: skip
_MADE_FROM = "made_from"


@dataclass(frozen=True)
class FeatureTable(RecordTable):
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


def write_shard(
    path: str | os.PathLike, table: FeatureTable, private: bool, made_from: dict[str, str] | None = None
) -> None:
    """Write one feature shard; with `private`, readable by its owner alone.

    Args:
        made_from: what the features were computed with besides the config and the library, such as the hash of a
            network's weights; all shards of a split must have the same.
    """
    values = numbers(table.features.reshape(-1), table.features.dtype.type)
    element = pa.field("element", values.type, nullable=False)  # a quarter faster to read than nullable elements
    lists = pa.FixedSizeListArray.from_arrays(values, type=pa.list_(element, table.features.shape[1]))
    metadata = {"shape": json.dumps(list(table.shape)), "dtype": str(table.features.dtype)}
    if made_from:
        metadata[_MADE_FROM] = json.dumps(made_from, sort_keys=True)
    written = pa.table(shards.columns_of(table, {"features": lists})).replace_schema_metadata(metadata)
    write_table(path, written, private, **plain.layout(written, "features"))


def write_manifest(
    path: str | os.PathLike, *, shard_paths: Sequence[str | os.PathLike], private: bool, **known: object
) -> None:
    """Write the manifest of one split's finished feature shards, in order.

    Args:
        known: the manifest's dataset, features, split and classes.

    Raises:
        StudyError: there is no shard, one is missing or damaged, or they differ in columns, layout or type.
    """
    facts, schema = shards.described(shard_paths, "columns, layout, type or network", private, _runs)
    if schema is None:
        raise StudyError(f"{path}: a manifest describes one shard at least, and there is none")
    facts |= known | {"dim": schema.field("features").type.list_size, "shape": json.loads(schema.metadata[b"shape"])}
    facts["dtype"] = schema.metadata[b"dtype"].decode()
    manifest = {key: facts[key] for key in _MANIFEST}
    if made_from := schema.metadata.get(_MADE_FROM.encode()):
        manifest[_MADE_FROM] = json.loads(made_from)
    write_json(path, manifest, private)


def _runs(shard: Path, table: pa.Table, content: bytes) -> dict:
    """Where a shard's file holds the features."""
    parts = [values_of(chunk.flatten()) for chunk in table.column("features").chunks]
    return {"runs": plain.locate(content, "features", parts)}


def read_manifest(folder: str | os.PathLike) -> dict:
    """The manifest in `folder`/manifest.json, validated.

    Raises:
        StudyError: it is missing, damaged, or not the manifest of feature shards.
    """
    return shards.read_manifest(folder, _MANIFEST)


def iterate(folder: str | os.PathLike, kept: Sequence[str | os.PathLike] = ()) -> Iterator[FeatureTable]:
    """The feature shards of `folder` one at a time, each checked against the manifest.

    Args:
        kept: the kept.parquet of de-duplications; rows that one of them does not list are left out.

    Raises:
        StudyError: a file is missing, damaged, or has changed since the manifest was written.
    """
    manifest = read_manifest(folder)
    keep = kept_ids(kept, manifest) if kept else None
    for entry in manifest["shards"]:
        shard = shards.checked_table(Path(folder) / entry["file"], entry)
        table = FeatureTable(
            features=features_of(shard, manifest),
            shape=tuple(manifest["shape"]),
            classes=tuple(manifest["classes"]),
            **shards.known_of(shard, manifest),
        )
        del shard  # features are copied out of it; nothing else of it stays while the next is read
        yield table if keep is None else only(table, keep)


def load(folder: str | os.PathLike, kept: Sequence[str | os.PathLike] = ()) -> FeatureTable:
    """All feature shards of `folder`, concatenated in order.

    Raises:
        StudyError: as for `iterate`.
    """
    return concatenate(list(iterate(folder, kept)))


def kept_ids(kept: Sequence[str | os.PathLike], manifest: dict) -> set[str]:
    """The ids of a manifest's records that all of these de-duplications (at least one) kept.

    Raises:
        StudyError: a file is missing, damaged, or lacks a column.
    """
    return set.intersection(*(shards.kept_ids(path, manifest["dataset"], manifest["split"]) for path in kept))


def label_column(manifest: dict) -> str:
    """The name of the column of labels: "labels" if multi-label, else "label"."""
    return "labels" if manifest["multi_label"] else "label"


def features_of(table: pa.Table, manifest: dict) -> np.ndarray:
    """(rows, d) features of a shard's table."""
    return shards.flat(table, "features").reshape(table.num_rows, manifest["dim"])
