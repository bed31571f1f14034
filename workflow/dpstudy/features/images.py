"""Raw images as features, for networks that scale them themselves: image shards are read, and nothing is written.

Their layout is that of features: a record's channels one after the other, (C, H, W), flattened; uint8.
"""

import math
import os
from collections.abc import Iterator, Sequence

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data import shards as data
from dpstudy.data.records import concatenate, only
from dpstudy.data.shards import COUNTS
from dpstudy.features.shards import FeatureTable, kept_ids


def read_manifest(folder: str | os.PathLike) -> dict:
    """The manifest of a folder of image shards, with `shape` (C, H, W) and `dtype` as in manifests of features.

    Raises:
        StudyError: it is missing or damaged, or its records have no images.
    """
    manifest = data.read_manifest(folder)
    if manifest["image_shape"] is None:
        raise StudyError(f"{folder}: its records have no images; features of extractor 'images' need some")
    height, width, channels = manifest["image_shape"]
    return manifest | {"shape": [channels, height, width], "dtype": "uint8"}


def iterate(folder: str | os.PathLike, kept: Sequence[str | os.PathLike] = ()) -> Iterator[FeatureTable]:
    """The image shards of `folder` one at a time, as `shards.iterate` yields those of features."""
    manifest = read_manifest(folder)
    keep = kept_ids(kept, manifest) if kept else None
    for entry in manifest["shards"]:
        records = data.read_shard(folder, entry["file"], manifest)
        if records.images is None:
            raise StudyError(f"{folder}: {entry['file']} has no images, though its manifest says so")
        pixels = np.ascontiguousarray(records.images.transpose(0, 3, 1, 2)).reshape(len(records), -1)
        facts = records.subjects, records.groups, tuple(manifest["shape"]), tuple(manifest["classes"])
        table = FeatureTable(records.ids, pixels, records.labels, *facts, records.counts)
        yield table if keep is None else only(table, keep)


def load(folder: str | os.PathLike, kept: Sequence[str | os.PathLike] = ()) -> FeatureTable:
    """All image shards of `folder`, concatenated in order."""
    return concatenate(list(iterate(folder, kept)))


class ImageBatches:
    """(pixels (rows, C H W) uint8, labels) of each shard of some folders, in order, read anew for each pass.

    Attributes:
        rows: in all shards, before any is dropped: public.
        nbytes: of all pixels.
    """

    def __init__(self, folders: Sequence[str | os.PathLike], kept: Sequence[str | os.PathLike] = ()):
        """
        Args:
            folders: each with image shards of one split and their manifest.
            kept: the kept.parquet of de-duplications; rows that one of them does not list are left out.

        Raises:
            StudyError: a manifest is missing or damaged.
        """
        self._folders, self._kept = folders, kept
        manifests = [read_manifest(folder) for folder in folders]
        self._shards = sum(len(manifest["shards"]) for manifest in manifests)
        self.rows = sum(manifest["rows"] for manifest in manifests)
        self.nbytes = sum(manifest["rows"] * math.prod(manifest["shape"]) for manifest in manifests)

    def __len__(self) -> int:
        """How many batches a pass has."""
        return self._shards

    def subjects(self) -> np.ndarray:
        """(rows,) the subject of each record of a pass, in order.

        Raises:
            StudyError: as `iterate`, or the records do not say.
        """
        tables = [table.subjects for table in self._tables()]
        named = [names for names in tables if names is not None]
        if len(named) < len(tables):
            raise StudyError(f"{self._folders[0]}: no column 'subject'; delete the folder and run the study again")
        return np.concatenate(named)

    def places(self) -> np.ndarray:
        """(rows,) the position of each record of a pass, counting those left out.

        Raises:
            StudyError: a file is missing or damaged.
        """
        if not self._kept:
            return np.arange(self.rows)
        stays: list[bool] = []
        for folder in self._folders:
            manifest = read_manifest(folder)
            keep = kept_ids(self._kept, manifest)
            stays += [name in keep for name in data.ids_of(folder, manifest)]
        return np.flatnonzero(stays)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """One pass.

        Raises:
            StudyError: as `iterate`.
        """
        for table in self._tables():
            yield table.features, table.labels

    def counted(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """One pass over batches that also hold the number of records of each record's subject.

        Raises:
            StudyError: as `iterate`, or the records do not say.
        """
        for table in self._tables():
            if table.counts is None:
                raise StudyError(f"{self._folders[0]}: no column {COUNTS!r}; delete the folder and run the study again")
            yield table.features, table.labels, table.counts

    def _tables(self) -> Iterator[FeatureTable]:
        for folder in self._folders:
            yield from iterate(folder, self._kept)
