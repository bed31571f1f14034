"""Batches of features and labels, shard by shard, read anew on each pass of a method.

Nothing is kept between passes but what the first one found out about each shard. The next shard is read while the
present one is worked on.
"""

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import present, read_table, sha256
from dpstudy.data.shards import COUNTS, counts_of, labels_of
from dpstudy.features import plain, shards

Batch = tuple[np.ndarray, ...]


@dataclass
class _Shard:
    """A shard, the ids to keep (None: all), and what the first pass found: which rows are kept (None: all), and the
    file's size and time of last change."""

    path: Path
    entry: dict
    manifest: dict
    keep: set[str] | None
    mask: np.ndarray | None = None
    state: tuple[int, int] | None = None


class ShardBatches:
    """(features (rows, d), labels (rows,) or (rows, m)) of each shard of some folders, in order.

    Each iteration reads the shards anew. The first one checks every shard against its manifest's SHA-256, later ones
    that the file is still the same one (its size and the time of its last change).

    Attributes:
        rows: in all shards, before any is dropped: public.
        nbytes: of all features, as stored.
    """

    def __init__(
        self,
        folders: Sequence[str | os.PathLike],
        kept: Sequence[str | os.PathLike] = (),
        share: tuple[int, int] = (0, 1),
    ):
        """
        Args:
            folders: each with feature shards of one split and their manifest.
            kept: the kept.parquet of de-duplications; rows that one of them does not list are left out.
            share: (i, k): the i-th of k shares, as equal as may be, of each folder's shards in their order; `rows` and
                `nbytes` are of that share.

        Raises:
            StudyError: a manifest, or one of `kept`, is missing or damaged.
        """
        self.rows = self.nbytes = 0
        self._shards = []
        for folder in folders:
            manifest = shards.read_manifest(folder)
            keep = shards.kept_ids(kept, manifest) if kept else None
            mine = share_of(manifest["shards"], *share)
            self._shards += [_Shard(Path(folder) / entry["file"], entry, manifest, keep) for entry in mine]
            rows = sum(entry["rows"] for entry in mine)
            self.rows += rows
            self.nbytes += rows * math.prod(manifest["shape"]) * np.dtype(manifest["dtype"]).itemsize

    def __len__(self) -> int:
        """How many batches a pass has."""
        return len(self._shards)

    def subjects(self) -> np.ndarray:
        """(rows,) the subject of each record of a pass, in order; after a first pass.

        Raises:
            StudyError: a shard is missing, damaged or has changed, or does not say.
        """
        parts = [np.empty(0, object)]
        for shard in self._shards:
            _check_unchanged(shard.path, shard.state or _state(shard.path))
            if "subject" not in shard.manifest["columns"]:
                raise StudyError(f"{shard.path}: no column 'subject'; delete the folder and run the study again")
            names = np.array(read_table(shard.path, ["subject"]).column("subject").to_pylist(), object)
            parts.append(names if shard.mask is None else names[shard.mask])
        return np.concatenate(parts)

    def places(self) -> np.ndarray:
        """(rows,) the position of each record of a pass, counting those left out; after a first pass."""
        masks = [np.ones(shard.entry["rows"], bool) if shard.mask is None else shard.mask for shard in self._shards]
        return np.flatnonzero(np.concatenate(masks))

    def __iter__(self) -> Iterator[Batch]:
        """One pass.

        Raises:
            StudyError: a shard is missing, damaged, or has changed since its manifest was written or since the first
                pass.
        """
        return self._pass(False)

    def counted(self) -> Iterator[Batch]:
        """One pass over batches that also hold the number of records of each record's subject.

        Raises:
            StudyError: as `__iter__`, or the shards do not say.
        """
        return self._pass(True)

    def _pass(self, counted: bool) -> Iterator[Batch]:
        with ThreadPoolExecutor(1) as reader:
            coming = None
            for shard in (*self._shards, None):
                arrived, coming = coming, shard and reader.submit(_read, shard, counted)
                if arrived:
                    yield arrived.result()


def share_of(shards: Sequence, index: int, shares: int) -> Sequence:
    """The `index`-th of `shares` contiguous parts of a list, whose lengths differ by at most one."""
    return shards[len(shards) * index // shares : len(shards) * (index + 1) // shares]


def _read(shard: _Shard, counted: bool) -> Batch:
    state = shard.state or _state(shard.path)
    if shard.state is None and sha256(shard.path) != shard.entry["sha256"]:
        raise StudyError(f"{shard.path}: its SHA-256 differs from the manifest's; delete it and run the study again")
    _check_unchanged(shard.path, state)
    batch = (_features(shard), _labels(shard), *([_counts(shard)] if counted else []))
    _check_unchanged(shard.path, state)
    for values in batch:
        if len(values) != shard.entry["rows"]:
            raise StudyError(f"{shard.path}: {len(values)} rows, but the manifest says {shard.entry['rows']}")
    shard.state = state
    return batch if shard.mask is None else tuple(values[shard.mask] for values in batch)


def _features(shard: _Shard) -> np.ndarray:
    manifest, runs = shard.manifest, shard.entry.get("runs")
    if runs is None:
        return shards.features_of(read_table(shard.path, ["features"]), manifest)
    return plain.read(shard.path, runs, manifest["dtype"]).reshape(-1, manifest["dim"])


def _labels(shard: _Shard) -> np.ndarray:
    """The labels; in the first pass, which rows were kept is found out too."""
    keep = shard.keep if shard.state is None else None
    table = read_table(shard.path, [shards.label_column(shard.manifest), *([] if keep is None else ["id"])])
    if keep is not None:
        shard.mask = np.fromiter((name in keep for name in table.column("id").to_pylist()), bool, table.num_rows)
    return labels_of(table, shard.manifest)


def _counts(shard: _Shard) -> np.ndarray:
    if COUNTS not in shard.manifest["columns"]:
        raise StudyError(f"{shard.path}: no column {COUNTS!r}; delete the folder and run the study again")
    return counts_of(read_table(shard.path, [COUNTS]))


def _state(path: Path) -> tuple[int, int]:
    with present(path):
        status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _check_unchanged(path: Path, state: tuple[int, int]) -> None:
    if _state(path) != state:
        raise StudyError(f"{path}: it was changed while the study read it; run the same command again")
