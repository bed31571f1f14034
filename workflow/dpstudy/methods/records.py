"""Private records that a method reads again and again, block by block: held in memory, or read anew from their shards;
where mini-batches are picked, from a file of their rows.

Nothing here releases anything. A pass yields blocks of NumPy arrays, or of tensors: on a GPU, of much data, and for a
method that computes with torch anyway (dpstudy/arrays.py). What leaves a method is its noisy releases only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dpstudy.arrays import Array, Place, one_hot, place, place_of, row_norms, take, to_numpy
from dpstudy.errors import StudyError
from dpstudy.methods import exact
from dpstudy.methods.bounds import LOOKED_AT, due, hold
from dpstudy.methods.clipping import LARGEST_NORM, SMALLEST_NORM, checked_labels
from dpstudy.methods.row_file import RowFile

# Of a bound: norms are float64, a factor and each product with it are rounded to float32, 2^-23 of the norm at most.
ROUNDED = 1 - 1e-6
_KEPT = (np.float16, np.uint8)  # types that features are held in; all others become float32
HOLD_BYTES = 1 << 30  # features that take more than this, as stored, are read anew for each pass
PICK_BYTES = 1 << 32  # and where single records are picked from them, put into a file of rows
# Feature values of one block. On a CPU 2 MB: rows fetched for one matrix product are still in cache for the next; on a
# GPU enough to keep it busy.
_CACHED_VALUES = 1 << 15  # of the float64 numbers that a map goes over again and again
_BLOCK_VALUES = {"cpu": 1 << 19, "cuda": 1 << 26}


@dataclass(frozen=True)
class RowMap:
    """What is done to each record on its own, by public or released constants: (x - center) * scale, then its norm.

    Attributes:
        unit_first: the record is scaled to Euclidean norm 1 before anything else.
        center, scale: (d,) float32, or None.
        unit: every record is scaled to Euclidean norm 1 (zero stays zero); else
        clip: it is scaled down to at most this norm.
        exact: it is rounded towards zero to exact.FEATURE_BITS bits below the smallest power of two that covers `bound`
            or, where there is none, the record's own norm.
    """

    unit_first: bool = False
    center: np.ndarray | None = None
    scale: np.ndarray | None = None
    unit: bool = False
    clip: float = math.inf
    exact: bool = False

    @property
    def bound(self) -> float:
        """The norm that no record exceeds."""
        return 1.0 if self.unit else self.clip

    def __call__(self, x: Array, out: Array | None = None) -> tuple[Array, Array]:
        """(rows, d) features as mapped, float32, and bounds on their norms, (rows,) float64.

        Exact ones may be written to `out`, which may be float64.

        A record with a NaN, an infinity or a norm above LARGEST_NORM becomes zero; its norm is given as NaN.

        Raises:
            RuntimeError: some records, measured again, are longer than they may be (bounds.py).
        """
        with np.errstate(all="ignore"):  # what overflows becomes zero here
            where = place_of(x)
            x, norm = self._exact(where, x, out) if self.exact else self._mapped(where, x)
        if math.isfinite(self.bound) and due(len(x)):
            hold("mapped records", row_norms(x[:LOOKED_AT]), self.bound)
        return x, norm

    def _exact(self, where: Place, x: Array, out: Array | None) -> tuple[Array, Array]:
        """A function of each record alone, bit for bit: what is added up on the way is exact. float32 holds it too."""
        found, norms = where.empty(*x.shape) if out is None else out, where.empty(len(x), dtype="float64")
        rows = len(x) if where.device == "cuda" else max(1, _CACHED_VALUES // max(1, x.shape[1]))
        for start in range(0, len(x), rows):
            part = slice(start, start + rows)
            found[part], norms[part] = self._exact_block(where, where.array(x[part], "float64"))
        return found, norms

    def _exact_block(self, where: Place, x: Array) -> tuple[Array, Array]:
        xp = where.xp
        if self.unit_first:
            y, unit, norm = exact.whole_rows(x)
            x = y * xp.where(norm <= LARGEST_NORM, unit * _to_unit(norm), math.nan)[:, None]
        if self.center is not None:
            x = x - where.array(self.center, "float64")
        if self.scale is not None:
            x = x * where.array(self.scale, "float64")
        y, unit, norm = exact.whole_rows(x)
        dead, some = ~(norm <= LARGEST_NORM), where.array(norm >= SMALLEST_NORM, "float64")
        if self.unit:
            factor, most = exact.BELOW * _to_unit(norm), some
        elif math.isfinite(self.clip):
            most = xp.where(norm > self.clip, self.clip, norm)
            factor = xp.where(norm > self.clip, exact.BELOW * self.clip / norm, 1.0)
        else:
            factor, most = some, norm * some
        grid = exact.covers(most)
        if math.isfinite(self.bound):
            grid[:] = exact.cover(self.bound)
        grid *= 2.0**-exact.FEATURE_BITS
        y *= (factor * unit / grid)[:, None]
        if dead.any():
            y[dead] = 0.0
        y = exact.towards_zero(y)
        y *= grid[:, None]
        return y, xp.where(dead, math.nan, most)

    def _mapped(self, where: Place, x: Array) -> tuple[Array, Array]:
        xp = where.xp
        x = where.array(x, "float32")
        if self.unit_first:
            norm = row_norms(x)
            x = x * where.array(xp.where(norm <= LARGEST_NORM, _to_unit(norm), math.nan), "float32")[:, None]
        if self.center is not None:
            x = x - where.array(self.center)
        if self.scale is not None:
            x = x * where.array(self.scale)
        norm = row_norms(x)
        dead = ~(norm <= LARGEST_NORM)
        if dead.any():
            x = xp.where(dead[:, None], 0.0, x)
        if self.unit:
            factor = xp.where(dead, 0.0, ROUNDED * _to_unit(norm))
            x = x * where.array(factor, "float32")[:, None]
            norm = where.array(factor > 0, "float64")
        elif math.isfinite(self.clip):
            x = x * where.array(xp.where(dead, 0.0, _clipping(norm, self.clip)), "float32")[:, None]
            norm = xp.where(norm > self.clip, self.clip, norm)
        return x, xp.where(dead, math.nan, norm)


def _clipping(norm: Array, bound: float) -> Array:
    """Rounded towards zero: a norm never exceeds the bound by more than float32's rounding of a product."""
    return place_of(norm).xp.where(norm > bound, ROUNDED * bound / norm, 1.0)


def _to_unit(norm: Array) -> Array:
    """1/norm; 0 for norms so small that float32 does not hold their square: they would be scaled beyond 1."""
    return place_of(norm).xp.where(norm < SMALLEST_NORM, 0.0, 1 / norm)


@dataclass(frozen=True)
class Block:
    """Some records: mapped features (rows, d) float32, bounds on their norms (rows,) float64 (NaN: the record takes no
    part), and labels: (rows,) class indices or (rows, m) zeros and ones."""

    features: Array
    norms: Array
    labels: Array

    def one_hot(self, classes: int) -> Array:
        """(rows, m) float32 targets."""
        if self.labels.ndim == 2:
            return place_of(self.labels).array(self.labels, "float32")
        return one_hot(self.labels, classes)


@dataclass(frozen=True)
class Records:
    """Private records.

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

    @classmethod
    def read(
        cls,
        batches: Iterable,
        classes: int,
        positives: int = 1,
        picked: bool = False,
        tensors: bool = False,
        capacity: int | None = None,
    ) -> Records:
        """Take (features (n, d), labels (n,) or (n, m)) batches in; they are held unless they take too much memory.

        Args:
            batches: an iterable; one that says its `nbytes` above HOLD_BYTES must allow being iterated again and again.
            classes: m.
            positives: the most positive labels a record may have.
            picked: whether `blocks` will be asked for single records. Beyond PICK_BYTES they lie in a file.
            tensors: whether blocks shall be tensors, however few the records.
            capacity: how many records sums over them shall have room for (`Problem.capacity`), or None.

        Raises:
            StudyError: no rows, more than `capacity`, or labels that `checked_labels` refuses.
            OSError: the disk of temporary files is full.
        """
        nbytes = getattr(batches, "nbytes", 0)
        held, on_disk = nbytes <= (PICK_BYTES if picked else HOLD_BYTES), picked and nbytes > PICK_BYTES
        features, labels, dim, file = [], [], 0, None
        for x, y in batches:
            x = np.asarray(x)
            labels.append(_label_array(checked_labels(y, classes, positives)))
            dim = x.shape[1]
            dtype = x.dtype if x.dtype in _KEPT else np.dtype("f4")
            if held:
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
        where = place(tensors or not held or 4 * rows * dim > HOLD_BYTES)
        said = where.array(np.concatenate(labels))
        whole = where.array(features[0] if len(features) == 1 else np.concatenate(features)) if held else file
        source = () if held or on_disk else batches
        found = cls(rows, dim, classes, where, said, RowMap(), whole, _source=source, capacity=capacity)
        return found.mapped(RowMap())

    @property
    def bound(self) -> float:
        """The norm that no mapped record exceeds."""
        return self._map.bound

    @property
    def dtype(self) -> str:
        """In which products and sums are made: "float64" where they are exact (exact.py), else "float32"."""
        return "float64" if self.capacity else "float32"

    @property
    def held(self) -> bool:
        """Whether the features are in memory, or in a file of rows: single records may be asked for."""
        return self._stored is not None

    def mapped(self, rule: RowMap) -> Records:
        """The same records under another map of the values that they were brought with (not of an earlier map's)."""
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
        """One pass over all records, or over those that `index` (n',) names, in blocks of about `rows` records.

        Raises:
            RuntimeError: `index` on records that were not read to be picked from.
        """
        size = rows or self._rows()
        if index is not None:
            yield from self._chosen(self.place.array(index), size)
        elif self.held:
            for start in range(0, self.rows, size):
                part = slice(start, start + size)
                yield Block(*self._mapped_rows(part), self._labels[part])
        else:
            yield from self._streamed(size)

    def stored(self) -> Iterator[np.ndarray]:
        """(rows, d) float32 blocks of the features as they were brought, without the map."""
        for x in (x for x, _ in self._source) if self._stored is None else [self._stored]:
            for start in range(0, len(x), self._rows()):
                yield to_numpy(self.place.array(x[start : start + self._rows()], "float32"))

    def _mapped_rows(self, part: slice | Array) -> tuple[Array, Array]:
        """Features and norms of some rows that are held."""

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
            part = index[start : start + size]
            yield Block(*self._mapped_rows(part), self._labels[part])

    def _streamed(self, size: int) -> Iterator[Block]:
        place = 0
        for x, _ in self._source:
            for start in range(0, len(x), size):
                features, norms = self._map(self.place.array(np.ascontiguousarray(x[start : start + size])))
                yield Block(features, norms, self._labels[place : place + len(features)])
                place += len(features)


def _label_array(labels: np.ndarray) -> np.ndarray:
    return labels.astype(np.int64) if labels.ndim == 1 else labels.astype(np.uint8)
