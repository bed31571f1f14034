"""Private records that a method reads again and again, block by block: held in memory, or read anew from their shards.

Nothing here releases anything. A pass yields blocks on the device (a GPU where there is one); what leaves a method is
its noisy releases only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from dpstudy.errors import StudyError
from dpstudy.methods.bounds import LOOKED_AT, due, hold
from dpstudy.methods.clipping import LARGEST_NORM, SMALLEST_NORM, checked_labels

_KEPT = (np.float16, np.uint8)  # types that features are held in; all others become float32
HOLD_BYTES = 1 << 30  # features that take more than this, as stored, are read anew for each pass
# Feature values of one block. On a CPU 2 MB: rows fetched for one matrix product are still in cache for the next; on a
# GPU enough to keep it busy.
_BLOCK_VALUES = {"cpu": 1 << 19, "cuda": 1 << 26}


def device() -> torch.device:
    """The GPU where there is one; matrix products keep float32's precision there too."""
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclass(frozen=True)
class RowMap:
    """What is done to each record on its own, by public or released constants: (x - center) * scale, then its norm.

    Attributes:
        unit_first: the record is scaled to Euclidean norm 1 before anything else.
        center, scale: (d,) float32, or None.
        unit: every record is scaled to Euclidean norm 1 (zero stays zero); else
        clip: it is scaled down to at most this norm.
    """

    unit_first: bool = False
    center: np.ndarray | None = None
    scale: np.ndarray | None = None
    unit: bool = False
    clip: float = math.inf

    def __call__(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(rows, d) features as mapped float32, and their (rows,) norms.

        A record with a NaN, an infinity or a norm above LARGEST_NORM becomes zero; its norm is given as NaN.

        Raises:
            RuntimeError: some records, measured again, are longer than they may be (bounds.py).
        """
        x = x.to(torch.float32)
        if self.unit_first:
            norm = torch.linalg.vector_norm(x, dim=1)
            x = x * torch.where(norm <= LARGEST_NORM, _to_unit(norm), math.nan)[:, None]
        if self.center is not None:
            x = x - torch.from_numpy(self.center).to(x.device)
        if self.scale is not None:
            x = x * torch.from_numpy(self.scale).to(x.device)
        norm = torch.linalg.vector_norm(x, dim=1)
        dead = ~(norm <= LARGEST_NORM)
        if dead.any():
            x = torch.where(dead[:, None], 0.0, x)
        if self.unit:
            factor = _to_unit(norm).nan_to_num_(0.0)
            x = x * factor[:, None]
            norm = (factor > 0).to(norm.dtype)
        elif math.isfinite(self.clip):
            x = x * _clipping(norm, self.clip)[:, None].nan_to_num_(0.0)
            norm = norm.clamp_max(self.clip)
        if (self.unit or math.isfinite(self.clip)) and due(len(x)):
            lengths = torch.linalg.vector_norm(x[:LOOKED_AT].double(), dim=1)
            hold("mapped records", lengths, 1.0 if self.unit else self.clip)
        return x, torch.where(dead, math.nan, norm)


def _clipping(norm: torch.Tensor, bound: float) -> torch.Tensor:
    """Rounded towards zero: a norm never exceeds the bound by more than float32's rounding of a product."""
    return torch.where(norm > bound, bound / norm * (1 - 1e-6), 1.0)


def _to_unit(norm: torch.Tensor) -> torch.Tensor:
    """1/norm; 0 for norms so small that float32 does not hold their square: they would be scaled beyond 1."""
    return torch.where(norm < SMALLEST_NORM, 0.0, 1 / norm)


@dataclass(frozen=True)
class Block:
    """Some records: mapped features (rows, d) float32, their norms (rows,) (NaN: the record takes no part), and labels:
    (rows,) class indices or (rows, m) zeros and ones."""

    features: torch.Tensor
    norms: torch.Tensor
    labels: torch.Tensor

    def one_hot(self, classes: int) -> torch.Tensor:
        """(rows, m) float32 targets."""
        if self.labels.ndim == 2:
            return self.labels.to(torch.float32)
        return torch.nn.functional.one_hot(self.labels, classes).to(torch.float32)


@dataclass(frozen=True)
class Records:
    """Private records.

    Attributes:
        rows, dim, classes: how many records are held (private: never divide by it), d and m.
        device: where blocks are yielded.
    """

    rows: int
    dim: int
    classes: int
    device: torch.device
    _labels: torch.Tensor
    _map: RowMap
    _stored: torch.Tensor | None = None  # held: as brought, float32, float16 or uint8
    _features: torch.Tensor | None = None  # held: mapped, unless that takes too much memory
    _norms: torch.Tensor | None = None
    _source: Iterable = ()  # not held: read anew for each pass

    @classmethod
    def read(cls, batches: Iterable, classes: int, positives: int = 1, hold: float = HOLD_BYTES) -> Records:
        """Take (features (n, d), labels (n,) or (n, m)) batches in; they are held unless they take too much memory.

        Args:
            batches: an iterable; one that says its `nbytes` above `hold` must allow being iterated again and again.
            classes: m.
            positives: the most positive labels a record may have.
            hold: bytes of features, as stored, up to which they are held.

        Raises:
            StudyError: no rows, or labels that `checked_labels` refuses.
        """
        held = getattr(batches, "nbytes", 0) <= hold
        features, labels, dim = [], [], 0
        for x, y in batches:
            x = np.asarray(x)
            labels.append(torch.from_numpy(_label_array(checked_labels(y, classes, positives))))
            dim = x.shape[1]
            if held:
                features.append(torch.from_numpy(np.ascontiguousarray(x, x.dtype if x.dtype in _KEPT else "f4")))
        if not sum(map(len, labels)):
            raise StudyError("there are no training rows to learn from")
        where = device()
        said = torch.cat(labels).to(where)
        whole = (features[0] if len(features) == 1 else torch.cat(features)).to(where) if held else None
        source = () if held else batches
        return cls(len(said), dim, classes, where, said, RowMap(), whole, _source=source).mapped(RowMap())

    @property
    def held(self) -> bool:
        """Whether the features are in memory."""
        return self._stored is not None

    def mapped(self, rule: RowMap) -> Records:
        """The same records under another map of the values that they were brought with (not of an earlier map's)."""
        stored = self._stored
        if stored is None or 4 * stored.numel() > HOLD_BYTES:
            return replace(self, _map=rule, _features=None, _norms=None)  # block by block, as they are asked for
        features = torch.empty(stored.shape, dtype=torch.float32, device=self.device)
        norms = torch.empty(self.rows, device=self.device)
        for start in range(0, self.rows, self._rows()):
            part = slice(start, start + self._rows())
            features[part], norms[part] = rule(stored[part])
        return replace(self, _features=features, _norms=norms, _map=rule)

    def _rows(self) -> int:
        # not fewer than classes, or fetching the weights anew for each block would dominate
        return max(self.classes, _BLOCK_VALUES[self.device.type] // max(1, self.dim))

    def blocks(self, rows: int | None = None, index: torch.Tensor | None = None) -> Iterator[Block]:
        """One pass over all records, or over those that `index` (n',) names, in blocks of about `rows` records.

        Raises:
            StudyError: `index` on records that are not held.
        """
        size = rows or self._rows()
        if index is not None:
            yield from self._chosen(index.to(self.device), size)
        elif self.held:
            for start in range(0, self.rows, size):
                part = slice(start, start + size)
                yield Block(*self._mapped_rows(part), self._labels[part])
        else:
            yield from self._streamed(size)

    def stored(self) -> Iterator[torch.Tensor]:
        """(rows, d) float32 blocks of the features as they were brought, without the map."""
        for x in (x for x, _ in self._source) if self._stored is None else [self._stored]:
            for start in range(0, len(x), self._rows()):
                yield torch.as_tensor(x[start : start + self._rows()]).to(self.device, torch.float32)

    def _mapped_rows(self, part: slice | torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Features and norms of some rows that are held."""

        def rows(values: torch.Tensor) -> torch.Tensor:
            return values[part] if isinstance(part, slice) else values.index_select(0, part)

        if self._features is not None and self._norms is not None:
            return rows(self._features), rows(self._norms)
        if self._stored is None:
            raise RuntimeError("these records are read anew for each pass: no rows of theirs are held")
        return self._map(rows(self._stored))

    def _chosen(self, index: torch.Tensor, size: int) -> Iterator[Block]:
        if not self.held:
            raise StudyError("mini-batches need the features in memory, and these were read to be streamed")
        for start in range(0, len(index), size):
            part = index[start : start + size]
            yield Block(*self._mapped_rows(part), self._labels[part])

    def _streamed(self, size: int) -> Iterator[Block]:
        place = 0
        for x, _ in self._source:
            for start in range(0, len(x), size):
                stored = torch.from_numpy(np.ascontiguousarray(x[start : start + size])).to(self.device)
                features, norms = self._map(stored)
                yield Block(features, norms, self._labels[place : place + len(features)])
                place += len(features)


def _label_array(labels: np.ndarray) -> np.ndarray:
    return labels.astype(np.int64) if labels.ndim == 1 else labels.astype(np.uint8)
