"""The sufficient statistics of least squares: sums over records, in one pass over the features.

They are private: a noisy release is what may leave. One pass serves every epsilon, regulariser, seed and trial.
"""

import contextlib
import functools
import itertools
import json
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.sparse import csr_matrix

from dpstudy.core.arrays import place
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensor_metadata, read_tensors, write_tensors
from dpstudy.core.progress import progress
from dpstudy.methods.averaging import scaled, weighted
from dpstudy.methods.clipping import clip_rows
from dpstudy.methods.exact import CAPACITY, check_capacity, grid_of
from dpstudy.methods.labels import checked_labels
from dpstudy.methods.row_map import RowMap

_BLOCK = 8192  # rows of one product, at least
_LARGE = 1 << 30  # bytes, as stored, from which torch's speed pays for its import
_CLASS_BLOCK = 65_536  # where each class has a product of its own


@dataclass(frozen=True)
class Statistics:
    """Sums over the clipped rows x_i (norm at most `clipping_norm`) with targets y_i in {0,1}^m.

    Attributes:
        gram: (d, d), sum of x x^T. Frobenius sensitivity C^2.
        targets: (m, d), sum of y x^T. Frobenius sensitivity C sqrt(k), k the most positives of a record.
        class_grams: (m, d, d), sums of x x^T over the positives of each class, or None. Sensitivity C^2 sqrt(k).
        clipping_norm: C; infinite where nothing was clipped.
        positives: k.
        exact: the sums are float64, of rows on a grid (exact.py); else they are float32.
        averaged: each record's part is divided by how many its person has (averaging.py).
        class_weights: what records count for by their labels, as of `Problem`.
    """

    gram: np.ndarray
    targets: np.ndarray
    class_grams: np.ndarray | None
    clipping_norm: float
    positives: int
    exact: bool = False
    averaged: bool = False
    class_weights: tuple[float, ...] = ()

    def __add__(self, other: "Statistics") -> "Statistics":
        """The sums over the records of both statistics.

        Raises:
            ValueError: they differ in clipping norm, positives, shape, exactness, or in having class Grams.
        """
        if _kind(self) != _kind(other):
            raise ValueError(f"statistics {_kind(self)} and {_kind(other)} do not add up")
        class_grams = None if self.class_grams is None else self.class_grams + other.class_grams
        return replace(self, gram=self.gram + other.gram, targets=self.targets + other.targets, class_grams=class_grams)

    def save(self, path) -> None:
        """Write the statistics to a file that only its owner can read."""
        metadata = {"clipping_norm": repr(self.clipping_norm), "positives": str(self.positives)}
        metadata["sums"] = "exact" if self.exact else "float32"
        metadata |= {"averaged": "persons"} if self.averaged else {}
        metadata |= {"class_weights": json.dumps(self.class_weights)} if self.class_weights else {}
        write_tensors(path, _tensors(self), metadata, private=True)

    @classmethod
    def load(cls, path) -> "Statistics":
        """Read statistics that `save` wrote."""
        metadata = read_tensor_metadata(path)
        tensors = read_tensors(path)
        return cls(
            gram=tensors["gram"],
            targets=tensors["targets"],
            class_grams=tensors.get("class_grams"),
            clipping_norm=float(metadata["clipping_norm"]),
            positives=int(metadata["positives"]),
            exact=metadata.get("sums") == "exact",
            averaged="averaged" in metadata,
            class_weights=tuple(json.loads(metadata.get("class_weights", "[]"))),
        )


def add_up(paths: Sequence) -> Statistics:
    """The sum of the statistics that jobs computed on shares of the records, in float64, with two in memory at a time.

    Raises:
        ValueError: they do not belong together.
    """
    first = Statistics.load(paths[0])
    wide = {name: value.astype(np.float64) for name, value in _tensors(first).items()}
    for path in paths[1:]:
        other = Statistics.load(path)
        if _kind(other) != _kind(first):
            raise ValueError(f"statistics {_kind(first)} and {_kind(other)} do not add up")
        for name, value in _tensors(other).items():
            wide[name] += value
    sums = wide if first.exact else {name: value.astype(np.float32) for name, value in wide.items()}
    return replace(first, gram=sums["gram"], targets=sums["targets"], class_grams=sums.get("class_grams"))


def _tensors(statistics: Statistics) -> dict[str, np.ndarray]:
    """The sums that the statistics have, by name."""
    tensors = {"gram": statistics.gram, "targets": statistics.targets}
    return tensors if statistics.class_grams is None else tensors | {"class_grams": statistics.class_grams}


def _kind(statistics: Statistics) -> dict:
    """The properties that two statistics must have in common to be added."""
    return {
        "shape": statistics.targets.shape,
        "class Grams": statistics.class_grams is not None,
        "clipping norm": statistics.clipping_norm,
        "positives": statistics.positives,
        "exact": statistics.exact,
        "averaged": statistics.averaged,
        "class weights": statistics.class_weights,
    }


class _Sums(Protocol):
    """The interface of running sums over some of the rows, on one thread or device."""

    def add(self, features: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Add (n, d) features with checked labels, each record times its weight."""

    def totals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """gram, targets and class_grams, as `Statistics` holds them."""


def accumulate(
    batches: Iterable[tuple[np.ndarray, ...]],
    classes: int,
    clipping_norm: float,
    positives: int = 1,
    per_class: bool = False,
    threads: int = 1,
    may_be_empty: bool = False,
    exact: bool = False,
    averaged: bool = False,
    class_weights: tuple[float, ...] = (),
) -> Statistics:
    """The statistics of (features (n, d), labels (n,) or (n, m)) batches, in one pass, on a GPU where there is one.

    Products of blocks are float32, their sum is float64. On a CPU the Gram is a symmetric rank-k update: half the
    work of a matrix product. Rows with a NaN or infinity contribute zero (a per-record rule).

    Args:
        exact: rows lie on a grid, products and sums are float64: nothing is rounded (exact.py), whatever the order,
            threads or processor. Class Grams then take 8 m d^2 bytes, twice as much as otherwise: 8.4 GB of 1,000
            classes and 1,024 features.
        averaged: each record's part is divided by how many its person has (averaging.py).
        class_weights: what records count for by their labels, as of `Problem`.
        threads: above 1, each works on its share of every batch with sums and a BLAS thread of its own.
        may_be_empty: no rows are no mistake: this is a part of the records.

    Raises:
        StudyError: no rows, unless that may be, more than exact sums have room for, or labels that `checked_labels`
            refuses.
    """
    sums: Sequence[_Sums] = ()
    rows = 0
    large, total = getattr(batches, "nbytes", 0) > _LARGE, len(batches) if isinstance(batches, Sized) else None
    with one_thread_each(threads > 1), ThreadPoolExecutor(threads) as pool:
        for features, labels, weights in progress(weighted(batches, averaged, class_weights), "statistics", total):
            labels = checked_labels(labels, classes, positives)
            sums = sums or _sums(features.shape[1], classes, clipping_norm, per_class, threads, large, exact)
            cuts = [len(labels) * part // len(sums) for part in range(len(sums) + 1)]
            parts = [
                (features[start:stop], labels[start:stop], None if weights is None else weights[start:stop])
                for start, stop in itertools.pairwise(cuts)
            ]
            others = [pool.submit(some.add, *part) for some, part in zip(sums[1:], parts[1:], strict=True)]
            sums[0].add(*parts[0])  # on this thread: where there is one part, no other is started
            for added in others:
                added.result()
            rows += len(labels)
            if exact:
                check_capacity(rows, CAPACITY)
    if not rows and not (may_be_empty and sums):
        raise StudyError("there are no training rows to learn from")
    made = (Statistics(*some.totals(), clipping_norm, positives, exact, averaged, class_weights) for some in sums)
    return functools.reduce(operator.add, made)


@contextlib.contextmanager
def one_thread_each(limited: bool) -> Iterator[None]:
    """A context in which, if `limited`, BLAS and torch compute only on the thread that calls them."""
    if not limited:
        yield
        return
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")  # only where it computes anyway
    before = torch.get_num_threads() if torch else 1
    if torch:
        torch.set_num_threads(1)
    try:
        with threadpool_limits(1, "blas"):
            yield
    finally:
        if torch:
            torch.set_num_threads(before)


def _sums(
    dim: int, classes: int, clipping_norm: float, per_class: bool, threads: int, large: bool, exact: bool
) -> Sequence[_Sums]:
    """The running sums, on threads or a GPU; torch is imported only where a GPU's driver is installed, or it pays."""
    if (where := place()).device == "cuda":
        from dpstudy.methods.device_sums import DeviceSums

        return [DeviceSums(dim, classes, clipping_norm, per_class, where, exact=exact)]

    def clip() -> Callable[[np.ndarray], np.ndarray]:
        if exact:
            return _ExactRows(clipping_norm, large)
        return _clip_with_torch(clipping_norm) if large else functools.partial(clip_rows, norm=clipping_norm)

    grid = grid_of(clipping_norm) if exact else None
    return [_HostSums(dim, classes, clip(), per_class, "float64" if exact else "float32", grid) for _ in range(threads)]


class _ExactRows:
    """`clip_rows` on the grid, in the same memory each time, since the system would have to clear new memory."""

    def __init__(self, norm: float, large: bool):
        self._rule, self._rows, self._large = RowMap(clip=norm, exact=True), np.empty((0, 0)), large

    def __call__(self, features: np.ndarray) -> np.ndarray:
        if self._large and features.dtype == np.float16:  # torch widens it twenty times as fast as numpy
            import torch

            features = torch.from_numpy(features).float().numpy()
        if len(self._rows) < len(features):
            self._rows = np.empty(features.shape)
        return self._rule(features, self._rows[: len(features)])[0]


def _clip_with_torch(norm: float) -> Callable[[np.ndarray], np.ndarray]:
    """`clip_rows` for much data, since torch turns float16 into float32 twenty times as fast as numpy."""
    import torch

    rule = RowMap(clip=norm)
    return lambda features: rule(torch.from_numpy(features))[0].numpy()


class _HostSums:
    """Running sums on the CPU, over the rows that `clip` returns, on `grid` where sums are exact.

    Products and class Grams are of type `dtype`.
    """

    def __init__(
        self,
        dim: int,
        classes: int,
        clip: Callable[[np.ndarray], np.ndarray],
        per_class: bool,
        dtype: str,
        grid: float | None = None,
    ):
        self._clip, self._dtype, self._grid = clip, dtype, grid
        self._gram, self._targets = np.zeros((dim, dim)), np.zeros((classes, dim))
        self._class_grams = np.zeros((classes, dim, dim), dtype) if per_class else None

    def add(self, features: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Add (n, d) features with checked labels, each record times its weight."""
        size = max(_BLOCK, 2 * features.shape[1]) if self._class_grams is None else _CLASS_BLOCK
        for start in range(0, len(features), size):
            x = np.asarray(self._clip(np.ascontiguousarray(features[start : start + size])), self._dtype)
            y = _indicators(labels[start : start + size], len(self._targets), self._dtype)
            shares = None if weights is None else weights[start : start + size]
            self._targets += y.T @ scaled(x, shares, self._grid)
            x = scaled(x, None if shares is None else shares**0.5, self._grid)
            if self._class_grams is None:
                add_gram(self._gram, x, self._dtype)
            else:
                self._add_class_grams(self._class_grams, x, y)

    def _add_class_grams(self, class_grams: np.ndarray, x: np.ndarray, y: csr_matrix) -> None:
        single, y = (np.diff(y.indptr) == 1).all(), y.tocsc()
        for index in np.flatnonzero(np.diff(y.indptr)):
            rows = x[y.indices[y.indptr[index] : y.indptr[index + 1]]]
            part = rows.T @ rows
            class_grams[index] += part
            if single:  # every record stands in one class: the Gram is the sum of the class Grams
                self._gram += part
        if not single:
            add_gram(self._gram, x, self._dtype)

    def totals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """gram, targets and class_grams, as `Statistics` holds them."""
        gram, targets = (sums.astype(self._dtype, copy=False) for sums in (self._gram, self._targets))
        return gram, targets, self._class_grams


def _indicators(labels: np.ndarray, classes: int, dtype: str) -> csr_matrix:
    """(n, m) sparse 0/1 labels: with 1000 classes a dense product would take longer than that of the Gram matrix."""
    if labels.ndim == 2:
        return csr_matrix(labels, dtype=dtype)
    ones = np.ones(len(labels), dtype)
    return csr_matrix((ones, labels, np.arange(len(labels) + 1)), shape=(len(labels), classes))


def add_gram(total: np.ndarray, x: np.ndarray, dtype: str) -> None:
    """Add x^T x to `total`, by numpy's symmetric rank-k update: half the work of a product, and other threads go on."""
    x = np.asarray(x, dtype)
    total += x.T @ x


def mirror(matrix: np.ndarray) -> None:
    """Copy the upper triangle to the lower, in place."""
    for row in range(1, len(matrix)):
        matrix[row, :row] = matrix[:row, row]
