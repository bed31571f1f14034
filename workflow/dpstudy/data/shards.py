"""Shards of images: parquet files with a row per record, listed with their checksums in a manifest.

What shards of features have in common with them (features/shards.py) is here too.

The manifest holds the SHA-256 and the row count of each shard, and every read checks both.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from dpstudy.core.columns import numbers, rows_of_numbers, strings, values_of
from dpstudy.core.errors import StudyError
from dpstudy.core.files import present, read_json, read_table, write_json, write_table
from dpstudy.data.records import Records, RecordTable, concatenate

_MANIFEST = (
    "dataset", "split", "rows", "subjects", "classes", "multi_label", "image_shape", "columns", "private", "shards",
)  # fmt: skip
_GROUP = "group_"
COUNTS = "subject_records"  # the column of `counts`
_UNREADABLE = b"unreadable"  # of a shard's metadata: how many images it lacks
_GROUP_BYTES = 1 << 26  # of images: a row group is built in memory, where it takes three times as much
_ARROW_CHUNK_BYTES = 1 << 30  # an arrow `binary` array indexes its bytes with 32 bits


def write_shard(path: str | os.PathLike, records: Records, private: bool, unreadable: int = 0) -> None:
    """Write `records` as one parquet shard; with `private`, readable by its owner alone.

    Args:
        unreadable: images of it that were left out, since they could not be read; its manifest will say so.
    """
    layout, images = {}, {}
    shape = None
    if records.images is not None:
        shape = list(records.images.shape[1:])
        layout = {"row_group_size": max(1, _GROUP_BYTES // max(1, int(np.prod(shape))))}
        images["image"] = _binary_column(records.images)
    facts = {"image_shape": json.dumps(shape)} | ({_UNREADABLE: str(unreadable)} if unreadable else {})
    write_table(path, pa.table(columns_of(records, images)).replace_schema_metadata(facts), private, **layout)


def columns_of(records: RecordTable, content: Mapping[str, pa.Array | pa.ChunkedArray]) -> dict:
    """The columns of a shard: ids, content, labels and what else is known of each record."""
    columns = {"id": strings(records.ids), **content}
    if records.multi_label:
        columns["labels"] = rows_of_numbers(records.labels, np.int8)
    else:
        columns["label"] = numbers(records.labels, np.int32)
    if records.subjects is not None:
        columns["subject"] = strings(records.subjects)
    if records.counts is not None:
        columns[COUNTS] = numbers(records.counts, np.int32)
    return columns | {_GROUP + name: strings(values) for name, values in records.groups.items()}


def _binary_column(images: np.ndarray) -> pa.ChunkedArray:
    size = int(np.prod(images.shape[1:]))
    rows = max(1, _ARROW_CHUNK_BYTES // max(1, size))
    chunks = []
    for start in range(0, len(images), rows):
        part = np.ascontiguousarray(images[start : start + rows])
        offsets = np.arange(len(part) + 1, dtype=np.int32) * np.int32(size)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(part)]
        chunks.append(pa.Array.from_buffers(pa.binary(), len(part), buffers))
    return pa.chunked_array(chunks, pa.binary())


def write_manifest(
    path: str | os.PathLike,
    *,
    shard_paths: Sequence[str | os.PathLike],
    private: bool,
    look: Callable[[pa.Table], None] | None = None,
    **known: object,
) -> None:
    """Write the manifest of one split's finished shards, in order.

    With `private`, every column is listed as holding values of private records. Where a caller wants to `look` at each
    shard too, it need not be read a second time.

    Args:
        known: the manifest's dataset, split and classes.

    Raises:
        StudyError: the shards differ in columns or image shape, or an id stands twice in the split.
    """
    seen: set[str] = set()
    where = f"{known['dataset']}/{known['split']}"

    def looked_at(shard: Path, table: pa.Table, content: bytes) -> dict:
        for name in table.column("id").to_pylist():
            if name in seen:
                raise StudyError(f"{shard}: the id {name!r} stands twice in {where}; ids must be unique")
            seen.add(name)
        if look is not None:
            look(table)
        lost = int(table.schema.metadata.get(_UNREADABLE, 0))
        return {"unreadable": lost} if lost else {}

    facts, schema = described(shard_paths, "columns or image shape", private, looked_at)
    if schema is None:
        raise ValueError(f"{where}: there is no shard to describe")
    facts |= known | {"image_shape": json.loads(schema.metadata[b"image_shape"])}
    write_json(path, {key: facts[key] for key in _MANIFEST}, private)


def described(
    shard_paths: Sequence[str | os.PathLike],
    shared: str,
    private: bool,
    further: Callable[[Path, pa.Table, bytes], dict],
) -> tuple[dict, pa.Schema | None]:
    """What manifests of images and of features say alike of their shards, and the shards' schema.

    Args:
        shared: what must be the same in all of them, in words.
        private: every column is listed as holding values of private records.
        further: (path, table, content) of a shard -> what else the manifest says of it.

    Raises:
        StudyError: a shard is missing or damaged, or they differ in their schema.
    """
    entries, schema, subjects = [], None, set()
    for shard in map(Path, shard_paths):
        content = read_bytes(shard)
        table = read_table(shard, content=content)  # all of it: a manifest vouches for every page
        facts = {key: value for key, value in (table.schema.metadata or {}).items() if key != _UNREADABLE}
        present = table.schema.with_metadata(facts)
        schema = schema or present
        if not present.equals(schema, check_metadata=True):
            raise StudyError(f"{shard}: its {shared} differ from those of {shard_paths[0]}")
        if "subject" in table.column_names:
            subjects.update(table.column("subject").to_pylist())
        entry = {"file": shard.name, "rows": table.num_rows, "sha256": hashlib.sha256(content).hexdigest()}
        entries.append(entry | further(shard, table, content))
        del content, table  # before the next is read
    columns = {column.name: str(column.type) for column in schema or ()}
    facts = {
        "rows": sum(entry["rows"] for entry in entries),
        "subjects": len(subjects) if "subject" in columns else None,
        "multi_label": "labels" in columns,
        "columns": columns,
        "private": list(columns) if private else [],
        "shards": entries,
    }
    return facts, schema


def unreadable_in(manifests: Sequence[Mapping]) -> dict[str, tuple[int, int]]:
    """Data set -> (images that could not be read and were left out, all its images), by the manifests of its splits."""
    counts: dict[str, tuple[int, int]] = {}
    for manifest in manifests:
        lost, whole = counts.get(manifest["dataset"], (0, 0))
        more = sum(shard.get("unreadable", 0) for shard in manifest["shards"])
        counts[manifest["dataset"]] = (lost + more, whole + more + manifest["rows"])
    return counts


def read_manifest(folder: str | os.PathLike, keys: Sequence[str] = _MANIFEST) -> dict:
    """The manifest in `folder`/manifest.json, validated.

    Args:
        keys: that it has, but for `subjects`, which it may lack; those of image shards.

    Raises:
        StudyError: it is missing, damaged, or the manifest of other shards.
    """
    path = Path(folder) / "manifest.json"
    manifest = read_json(path)
    for key in keys:
        if key != "subjects" and not (isinstance(manifest, dict) and key in manifest):
            raise StudyError(f"{path}: no key {key!r}; delete the folder and run the study again")
    return manifest


def ids_of(folder: str | os.PathLike, manifest: Mapping) -> list[str]:
    """The ids of all rows of the shards in `folder`, in order; no other column is read.

    Raises:
        StudyError: a shard is missing or damaged.
    """
    shards = [read_table(Path(folder) / entry["file"], ["id"]) for entry in manifest["shards"]]
    return [name for shard in shards for name in shard.column("id").to_pylist()]


def read_shard(folder: str | os.PathLike, file: str, manifest: dict) -> Records:
    """The records of one shard in `manifest`, after checking its SHA-256 and row count.

    Raises:
        StudyError: the shard is missing, is not in the manifest, or has changed since the manifest was written.
    """
    path = Path(folder) / file
    entry = next((shard for shard in manifest["shards"] if shard["file"] == file), None)
    if entry is None:
        raise StudyError(f"{path}: not a shard of {manifest['dataset']}/{manifest['split']} by its manifest")
    table = checked_table(path, entry)
    return Records(images=_images(table, manifest), **known_of(table, manifest))


def checked_table(path: Path, entry: Mapping) -> pa.Table:
    """The table of a shard whose checksum matches its manifest's `entry`.

    Raises:
        StudyError: it is missing, or has changed since the manifest was written.
    """
    content = read_bytes(path)
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise StudyError(f"{path}: its SHA-256 differs from the manifest's; delete it and run the study again")
    table = read_table(path, content=content)
    if table.num_rows != entry["rows"]:
        raise StudyError(f"{path}: {table.num_rows} rows, but the manifest says {entry['rows']}")
    return table


def load(folder: str | os.PathLike) -> Records:
    """All records of the shards in `folder`, checked, in order.

    Raises:
        StudyError: as for `read_manifest` and `read_shard`.
    """
    manifest = read_manifest(folder)
    return concatenate([read_shard(folder, shard["file"], manifest) for shard in manifest["shards"]])


def kept_ids(path: str | os.PathLike, dataset: str, split: str) -> set[str]:
    """The ids of a split's records that de-duplication kept, from its kept.parquet.

    Raises:
        StudyError: the file is missing, damaged, or lacks a column.
    """
    table = read_table(path)
    missing = {"dataset", "split", "id"} - set(table.column_names)
    if missing:
        raise StudyError(f"{path}: no column {min(missing)!r}; delete it and run the study again")
    here = compute.and_(compute.equal(table["dataset"], dataset), compute.equal(table["split"], split))
    return set(table["id"].filter(here).to_pylist())


def read_bytes(path: Path) -> bytes:
    """The bytes of a shard's file.

    Raises:
        StudyError: there is none.
    """
    with present(path):
        return path.read_bytes()


def known_of(table: pa.Table, manifest: Mapping) -> dict:
    """The fields of a `RecordTable` in a shard's table: ids, labels, subjects, groups, counts."""
    names = table.column_names
    return {
        "ids": _strings(table, "id"),
        "labels": labels_of(table, manifest),
        "subjects": _strings(table, "subject") if "subject" in names else None,
        "groups": {name.removeprefix(_GROUP): _strings(table, name) for name in names if name.startswith(_GROUP)},
        "counts": counts_of(table) if COUNTS in names else None,
    }


def labels_of(table: pa.Table, manifest: Mapping) -> np.ndarray:
    """(rows,) int32 class indices or (rows, m) int8 zeros and ones of a shard's table."""
    if manifest["multi_label"]:
        return np.array(flat(table, "labels"), np.int8).reshape(table.num_rows, len(manifest["classes"]))
    return np.array(values_of(table.column("label").combine_chunks()), np.int32)


def counts_of(table: pa.Table) -> np.ndarray:
    """(rows,) int32 the number of records of each row's subject."""
    return np.array(values_of(table.column(COUNTS).combine_chunks()), np.int32)


def flat(table: pa.Table, column: str) -> np.ndarray:
    """The concatenated lists of a column of lists."""
    return values_of(table.column(column).combine_chunks().flatten())


def _images(table: pa.Table, manifest: Mapping) -> np.ndarray | None:
    if manifest["image_shape"] is None:
        return None
    shape = (-1, *manifest["image_shape"])
    chunks = [_chunk_bytes(chunk) for chunk in table.column("image").chunks] or [np.empty(0, np.uint8)]
    return np.concatenate(chunks).reshape(shape if table.num_rows else (0, *shape[1:]))


def _chunk_bytes(chunk: pa.BinaryArray) -> np.ndarray:
    offsets = np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1, chunk.offset * 4)
    return np.frombuffer(chunk.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]


def _strings(table: pa.Table, column: str) -> np.ndarray:
    return np.array(table.column(column).to_pylist(), dtype=object)
