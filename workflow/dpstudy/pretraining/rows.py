"""The public rows that a network is trained on, a few shards in memory at a time, and their order."""

import bisect
import hashlib
import math
import os
import zlib
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table
from dpstudy.data import shards
from dpstudy.data.records import Records, concatenate
from dpstudy.features.shards import kept_ids

HELD_BYTES = 2 << 30  # of images at once; beyond it, some shards after others


class PublicRows:
    """One split of a public set, without the rows that de-duplication removed.

    Attributes:
        manifest: of the split.
        counts: how many rows each shard keeps.
        sha256: of the ids of all of them, in order.
    """

    def __init__(self, folder: str | os.PathLike, kept: str | os.PathLike | None = None):
        """
        Raises:
            StudyError: a file is missing or damaged.
        """
        self._folder = Path(folder)
        self.manifest = shards.read_manifest(folder)
        keep = None if kept is None else kept_ids([kept], self.manifest)
        self._masks, self.counts, digest = [], [], hashlib.sha256()
        for entry in self.manifest["shards"]:
            ids = read_table(self._folder / entry["file"], ["id"]).column("id").to_pylist()
            mask = np.array([keep is None or name in keep for name in ids], bool)
            self._masks.append(mask)
            self.counts.append(int(mask.sum()))
            digest.update("".join(f"{name}\n" for name, is_kept in zip(ids, mask, strict=True) if is_kept).encode())
        self.sha256 = digest.hexdigest()

    def __len__(self) -> int:
        return sum(self.counts)

    def read(self, numbers: list[int]) -> Records:
        """The rows of these shards, concatenated."""
        parts = []
        for number in numbers:
            records = shards.read_shard(self._folder, self.manifest["shards"][number]["file"], self.manifest)
            parts.append(records.take(np.flatnonzero(self._masks[number])))
        return concatenate(parts)

    def batches(self, size: int):
        """All rows in order, in Records of at most `size` rows, a shard in memory at a time."""
        for number in range(len(self.counts)):
            records = self.read([number])
            for start in range(0, len(records), size):
                yield records.take(np.arange(start, min(start + size, len(records))))


class Order:
    """The rows of each step: every row once per epoch, in a new random order.

    Where the images exceed HELD_BYTES, an epoch takes the shards in a new order, a few at a time, and mixes the rows
    of those.

    Args:
        seed: decides the order.
        counts: rows of each shard.
        batch_size: rows a step; the last step of a group of shards may have fewer.
        together: shards in memory at once.
    """

    def __init__(self, seed: int, counts: list[int], batch_size: int, together: int):
        self._seed, self._counts, self._size = seed, counts, batch_size
        self._together = max(1, min(together, len(counts)))
        self._ends: list[int] = []  # steps until the end of each epoch
        self._at: tuple | None = None

    @classmethod
    def of(cls, seed: int, rows: PublicRows, batch_size: int) -> "Order":
        """The order with as many shards in memory at once as HELD_BYTES allow."""
        largest = max(rows.counts) * math.prod(rows.manifest["image_shape"])
        return cls(seed, rows.counts, batch_size, HELD_BYTES // max(1, largest))

    def steps(self, epochs: int) -> int:
        """The number of steps of `epochs` epochs."""
        while len(self._ends) < epochs:
            groups = self._groups(len(self._ends))
            steps = sum(math.ceil(sum(self._counts[shard] for shard in group) / self._size) for group in groups)
            self._ends.append((self._ends[-1] if self._ends else 0) + steps)
        return self._ends[epochs - 1]

    def at(self, step: int) -> tuple[list[int], np.ndarray]:
        """The shards in memory at a step, and the rows of their concatenation that the step takes."""
        while not self._ends or step >= self._ends[-1]:
            self.steps(len(self._ends) + 1)
        epoch = bisect.bisect_right(self._ends, step)
        left = step - (self._ends[epoch - 1] if epoch else 0)
        for number, group in enumerate(self._groups(epoch)):
            rows = sum(self._counts[shard] for shard in group)
            batches = math.ceil(rows / self._size)
            if left < batches:
                if self._at is None or self._at[0] != (epoch, number):
                    self._at = ((epoch, number), draws(self._seed, "rows", epoch, number).permutation(rows))
                return group, self._at[1][left * self._size : (left + 1) * self._size]
            left -= batches
        raise AssertionError(step)

    def _groups(self, epoch: int) -> list[list[int]]:
        if self._together == len(self._counts):
            return [list(range(len(self._counts)))]
        order = draws(self._seed, "shards", epoch).permutation(len(self._counts)).tolist()
        return [order[first : first + self._together] for first in range(0, len(order), self._together)]


def draws(seed: int, what: str, *numbers: int) -> np.random.Generator:
    """A random generator that depends on these arguments alone, so that checkpoints need no generator state."""
    return np.random.default_rng([seed, zlib.crc32(what.encode()), *numbers])


def check_images(rows: PublicRows, labelled: bool) -> None:
    """Refuse a public set that cannot train a network.

    Raises:
        StudyError: it has no images, too small ones, several labels a record where labels are learned, or no row.
    """
    where = f"public data set {rows.manifest['dataset']!r}"
    shape = rows.manifest["image_shape"]
    if shape is None:
        raise StudyError(f"{where}: pre-training needs images")
    if labelled and rows.manifest["multi_label"]:
        raise StudyError(f"{where}: pre-training by labels needs one label a record; or write objective: contrast")
    if min(shape[:2]) < 8:
        raise StudyError(f"{where}: images are {tuple(shape[:2])}; pre-training needs at least 8 pixels a side")
    if not len(rows):
        raise StudyError(f"{where}: no row is left to train on")
