"""Private records that a method reads repeatedly, block by block: from memory, from their shards, or from a row file.

A row file holds their features where mini-batches are drawn, and they are too many for memory.

Nothing here releases anything. A pass yields blocks of NumPy arrays, or of tensors: on a GPU, of much data, and for a
method that computes with torch anyway (dpstudy/core/arrays.py). What leaves a method is its noisy releases only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpstudy.core.arrays import Array, Place, one_hot, place, place_of, take, to_numpy
from dpstudy.core.errors import StudyError
from dpstudy.methods import exact
from dpstudy.methods.averaging import scaled, weighted
from dpstudy.methods.labels import checked_labels
from dpstudy.methods.problem import Problem
from dpstudy.methods.row_file import RowFile
from dpstudy.methods.row_map import RowMap

_KEPT = (np.float16, np.uint8)  # types that features are held in; all others become float32
HOLD_BYTES = 1 << 30  # features that take more than this, as stored, are read anew for each pass
PICK_BYTES = 1 << 32  # for mini-batches, features that take more than this go to a file of rows
# Feature values of one block. On a CPU 2 MB: rows fetched for one matrix product are still in cache for the next; on a
# GPU enough to keep it busy.
_BLOCK_VALUES = {"cpu": 1 << 19, "cuda": 1 << 26}


@dataclass(frozen=True)
class Block:
    """A block of records: features, norm bounds and labels.

    Mapped features are (rows, d) float32, bounds on their norms (rows,) float64 (NaN: the record takes no part), and
    labels (rows,) class indices or (rows, m) zeros and ones.

    Attributes:
        weights: (rows,) float64 shares of persons' contributions, where these are averaged; None: each record counts.
        grid: of exact sums of bounded features; else None.
    """

    features: Array
    norms: Array
    labels: Array
    weights: Array | None = None
    grid: float | None = None

    def one_hot(self, classes: int) -> Array:
        """(rows, m) float32 one-hot labels."""
        if self.labels.ndim == 2:
            return place_of(self.labels).array(self.labels, "float32")
        return one_hot(self.labels, classes)

    def shared(self, power: float = 1.0) -> Array:
        """(rows, d) features times weights ** power, for sums of features (1) or of their outer products (1/2)."""
        return scaled(self.features, None if self.weights is None else self.weights**power, self.grid)


@dataclass(frozen=True)
class Records:
    """Private records, with the map that each goes through as it is read.

    Attributes:
        rows, dim, classes: how many records are held (private: never divide by it), d and m.
        place: where blocks are yielded.
        capacity: how many records sums over them have room for, so that they are exact; None: they are float32.
    """

    rows: int
    dim: int
    classes: int
    place: Place
    _labels: Array
    _map: RowMap
    _stored: Array | RowFile | None = None  # held: as brought, float32, float16 or uint8
    _features: Array | None = None  # held: mapped, unless that takes too much memory
    _norms: Array | None = None
    _source: Iterable = ()  # not held: read anew for each pass
    capacity: int | None = None
    _weights: Array | None = None

    @classmethod
    def read(
        cls,
        batches: Iterable,
        classes: int,
        positives: int = 1,
        picked: bool = False,
        tensors: bool = False,
        capacity: int | None = None,
        averaged: bool = False,
        class_weights: Sequence[float] = (),
    ) -> Records:
        """Read (features (n, d), labels (n,) or (n, m)) batches, into memory unless they take too much of it.

        Args:
            batches: an iterable; one that says its `nbytes` above HOLD_BYTES must allow being iterated again and again.
            classes: m.
            positives: the most positive labels a record may have.
            picked: whether `blocks` will be asked for single records. Beyond PICK_BYTES they lie in a file.
            tensors: whether blocks shall be tensors, however few the records.
            capacity: how many records sums over them shall have room for (`Problem.capacity`), or None.
            averaged: a person's records count together as one (averaging.py).
            class_weights: what records count for by their labels, as of `Problem`.

        Raises:
            StudyError: no rows, more than `capacity`, or labels that `checked_labels` refuses; or they are to be
                averaged, and nobody knows how many each person has.
            OSError: the disk of temporary files is full.
        """
        nbytes = getattr(batches, "nbytes", 0)
        in_memory, on_disk = nbytes <= (PICK_BYTES if picked else HOLD_BYTES), picked and nbytes > PICK_BYTES
        features, labels, weights, dim, file = [], [], [], 0, None
        for x, y, shares in weighted(batches, averaged, class_weights):
            x = np.asarray(x)
            labels.append(_label_array(checked_labels(y, classes, positives)))
            weights += [] if shares is None else [shares]
            dim = x.shape[1]
            dtype = x.dtype if x.dtype in _KEPT else np.dtype("f4")
            if in_memory:
                features.append(np.ascontiguousarray(x, dtype))
            elif on_disk:
                file = file or RowFile(dim, dtype)
                file.append(x)
        rows = sum(map(len, labels))
        if not rows:
            raise StudyError("there are no training rows to learn from")
        if capacity is not None:
            exact.check_capacity(rows, capacity)
        # what is mapped anew in each pass is made float32 anew: torch does that several times as fast as NumPy
        where = place(tensors or not in_memory or 4 * rows * dim > HOLD_BYTES)
        targets = where.array(np.concatenate(labels))
        whole = where.array(features[0] if len(features) == 1 else np.concatenate(features)) if in_memory else file
        source = () if in_memory or on_disk else batches
        whose = where.array(np.concatenate(weights)) if weights else None
        records = cls(
            rows, dim, classes, where, targets, RowMap(), whole, _source=source, capacity=capacity, _weights=whose
        )
        return records.mapped(RowMap())

    @classmethod
    def of(cls, batches: Iterable, problem: Problem, picked: bool = False, tensors: bool = False) -> Records:
        """The records of batches, by `read` with the public facts of a problem; sums of `tensors` are float32."""
        shares: dict = {"averaged": problem.averaged, "class_weights": problem.class_weights}
        capacity = None if tensors else problem.capacity
        return cls.read(batches, problem.classes, problem.positives, picked, tensors, capacity=capacity, **shares)

    @property
    def bound(self) -> float:
        """The norm bound of mapped records."""
        return self._map.bound

    @property
    def weights(self) -> np.ndarray | None:
        """(rows,) weights of records, or None where every record counts in full."""
        return None if self._weights is None else to_numpy(self._weights)

    @property
    def dtype(self) -> str:
        """The dtype of products and sums: "float64" where they are exact (exact.py), else "float32"."""
        return "float64" if self.capacity else "float32"

    @property
    def held(self) -> bool:
        """Whether single records can be accessed, since features are in memory or in a row file."""
        return self._stored is not None

    def mapped(self, rule: RowMap) -> Records:
        """The records under another map of their original values, instead of the present map."""
        stored, rule = self._stored, replace(rule, exact=self.capacity is not None)
        if stored is None or isinstance(stored, RowFile) or 4 * math.prod(stored.shape) > HOLD_BYTES:
            return replace(self, _map=rule, _features=None, _norms=None)  # block by block, as they are asked for
        features, norms = self.place.empty(*stored.shape), self.place.empty(self.rows, dtype="float64")
        for start in range(0, self.rows, self._rows()):
            part = slice(start, start + self._rows())
            features[part], norms[part] = rule(stored[part])
        return replace(self, _features=features, _norms=norms, _map=rule)

    def _rows(self) -> int:
        # not fewer than classes, or fetching the weights anew for each block would dominate
        values = _BLOCK_VALUES[self.place.device] // (4 if self.capacity else 1)  # float64 beside float32
        return max(self.classes, values // max(1, self.dim))

    def blocks(self, rows: int | None = None, index: Array | None = None) -> Iterator[Block]:
        """Iterate over all records, or over those that `index` (n',) names, in blocks of about `rows` records.

        Raises:
            RuntimeError: `index` on records that were not read to be picked from.
        """
        size = rows or self._rows()
        if index is not None:
            yield from self._chosen(self.place.array(index), size)
        elif self.held:
            for start in range(0, self.rows, size):
                yield self._block(slice(start, start + size))
        else:
            yield from self._streamed(size)

    def stored(self) -> Iterator[np.ndarray]:
        """(rows, d) float32 blocks of the original features, without the map."""
        for x in (x for x, _ in self._source) if self._stored is None else [self._stored]:
            for start in range(0, len(x), self._rows()):
                yield to_numpy(self.place.array(x[start : start + self._rows()], "float32"))

    def _block(self, part: slice | Array, mapped: tuple[Array, Array] | None = None) -> Block:
        features, norms = mapped or self._mapped_rows(part)
        weights = None if self._weights is None else self._weights[part]
        grid = exact.grid_of(self.bound) if self.capacity else None
        return Block(features, norms, self._labels[part], weights, grid)

    def _mapped_rows(self, part: slice | Array) -> tuple[Array, Array]:
        """The mapped features, and their norms, of some rows in memory or in a row file."""

        def rows(values: Array | RowFile) -> Array:
            if isinstance(values, RowFile):
                return self.place.array(values[part if isinstance(part, slice) else to_numpy(part)])
            return values[part] if isinstance(part, slice) else take(values, part)

        if self._features is not None and self._norms is not None:
            return rows(self._features), rows(self._norms)
        if self._stored is None:
            raise RuntimeError("these records are read anew for each pass: no rows of theirs are held")
        return self._map(rows(self._stored))

    def _chosen(self, index: Array, size: int) -> Iterator[Block]:
        if not self.held:
            raise RuntimeError("these records were read for whole passes: single ones cannot be picked")
        for start in range(0, len(index), size):
            yield self._block(index[start : start + size])

    def _streamed(self, size: int) -> Iterator[Block]:
        place = 0
        for x, _ in self._source:
            for start in range(0, len(x), size):
                mapped = self._map(self.place.array(np.ascontiguousarray(x[start : start + size])))
                yield self._block(slice(place, place + len(mapped[0])), mapped)
                place += len(mapped[0])


def _label_array(labels: np.ndarray) -> np.ndarray:
    return labels.astype(np.int64) if labels.ndim == 1 else labels.astype(np.uint8)
