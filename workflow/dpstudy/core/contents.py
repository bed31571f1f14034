"""Hashes of the records behind a file (ids, values and labels), however they are stored."""

import hashlib
import json
import os
from collections import defaultdict
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_table, sha256

_FACTS = ("rows", "subjects", "classes", "multi_label", "shape", "image_shape", "dtype")  # of a manifest


def content_of(path: str | os.PathLike) -> str:
    """A SHA-256 of the records in a manifest's shards or in a parquet file; of any other file, of its bytes.

    The layout of parquet files and the number of shards do not change it.

    Raises:
        StudyError: a file is missing or damaged, or is not the one that the manifest vouches for.
    """
    path = Path(path)
    if path.suffix == ".parquet":
        return _digest({}, [path])
    if path.name != "manifest.json":
        return sha256(path)
    manifest = read_json(path)
    shards = [path.parent / shard["file"] for shard in manifest["shards"]]
    for file, shard in zip(shards, manifest["shards"], strict=True):
        if sha256(file) != shard["sha256"]:
            raise StudyError(f"{file}: its SHA-256 differs from the manifest's")
    return _digest({key: manifest.get(key) for key in _FACTS}, shards)


def _digest(facts: dict, files: list[Path]) -> str:
    columns: dict[str, tuple] = defaultdict(lambda: (hashlib.sha256(), hashlib.sha256(), hashlib.sha256()))
    for file in files:
        table = read_table(file)
        for name in table.column_names:
            for chunk in table.column(name).chunks:
                for hasher, part in zip(columns[name], _parts(chunk), strict=True):
                    hasher.update(part)
    digests = {name: [hasher.hexdigest() for hasher in hashers] for name, hashers in columns.items()}
    return hashlib.sha256(json.dumps([facts, digests], sort_keys=True).encode()).hexdigest()


def _parts(chunk) -> tuple:
    """Bytes of one chunk: its values, their lengths, and which are missing. Chunks put end to end give the bytes of
    their parts put end to end."""
    import pyarrow as pa

    missing = _array(chunk.is_null().cast(pa.uint8())).tobytes()
    if pa.types.is_fixed_size_list(chunk.type) or pa.types.is_list(chunk.type):
        lengths = _array(chunk.value_lengths()).astype(np.int64)
        return _bytes(chunk.flatten()), lengths.tobytes(), missing
    if pa.types.is_binary(chunk.type) or pa.types.is_string(chunk.type):
        offsets = np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1, chunk.offset * 4).astype(np.int64)
        values = memoryview(chunk.buffers()[2] or b"")[offsets[0] : offsets[-1]]
        return values, np.diff(offsets).tobytes(), missing
    return _bytes(chunk), b"", missing


def _bytes(values) -> bytes:
    array = np.ascontiguousarray(_array(values))
    return array.tobytes() if array.dtype != object else json.dumps(array.tolist()).encode()


def _array(values) -> np.ndarray:
    import pyarrow as pa

    from dpstudy.core.columns import values_of

    numeric = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    return values_of(values) if numeric and not values.null_count else values.to_numpy(zero_copy_only=False)
