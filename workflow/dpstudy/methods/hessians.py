"""Class-diagonal Hessian blocks of a linear head: private sums over records, for some of the classes at a time.

The block of class j is sum_i w_ij x_i x_i^T with w = p (1 - p), p the class's probability: no per-example Hessian is
formed. Each w lies in [0, 1/4]. Under secure noise the sum is exact (exact.py): sqrt(w_ij) x_i is rounded towards zero
to the grid, and its outer product with itself is what the record contributes, no longer than w_ij |x_i|^2. Otherwise
products of blocks are float32 and their sum float64, which is then rounded to float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk

from dpstudy.core.arrays import Array, place_of, scores_of, sigmoid, softmax, to_numpy
from dpstudy.methods import exact
from dpstudy.methods.records import Block, Records
from dpstudy.methods.sufficient_statistics import mirror


def class_hessians(records: Records, weights: Array, loss: str, classes: range) -> np.ndarray:
    """(len(classes), d, d) blocks at (m, d) `weights`, without a bias: float32, or float64 where sums are exact."""
    curvatures = _Curvatures(records, weights, loss)
    return _weighted_grams(records, len(classes), lambda block: curvatures(block, classes))


def shared_hessian(records: Records, weights: Array) -> np.ndarray:
    """(d, d) sum over all classes of the softmax blocks: the weight of record i is 1 - sum_j p_ij^2."""
    curvatures, classes = _Curvatures(records, weights, "softmax"), range(len(weights))
    return _weighted_grams(records, 1, lambda block: curvatures(block, classes).sum(0)[None])[0]


def flat_hessian(records: Records, curvature: float) -> np.ndarray:
    """(d, d) `curvature` x the Gram matrix: the Hessian where all records have one curvature; see `class_hessians`."""

    def same(block: Block) -> Array:
        return records.place.array(np.full((1, len(block.features)), curvature))

    return _weighted_grams(records, 1, same)[0]


class _Curvatures:
    """Second derivatives of records' losses by their scores; 0 where a record's scores overflow."""

    def __init__(self, records: Records, weights: Array, loss: str):
        self._exact, self._loss = records.capacity is not None, loss
        self._weights = exact.on_grid(weights) if self._exact else weights

    def __call__(self, block: Block, classes: range) -> Array:
        """(len(classes), rows) second derivatives; float64 where sums are exact, and then so is that over classes."""
        part, features = slice(classes.start, classes.stop), block.features
        with np.errstate(all="ignore"):
            if self._exact:
                features = place_of(features).array(features, "float64")
            weights = self._weights if self._loss == "softmax" else self._weights[part]
            p = scores_of(weights, features)
            if self._loss == "softmax":
                p = (exact.softmax if self._exact else softmax)(p)[part]
            else:
                p = (exact.sigmoid if self._exact else sigmoid)(p)
            curvatures = p * (1 - p)
            if self._exact:
                curvatures = exact.truncated(curvatures, exact.CLASS_GRID)
        return place_of(curvatures).xp.where(curvatures == curvatures, curvatures, 0.0)


def _weighted_grams(records: Records, count: int, curvature: Callable[[Block], Array]) -> np.ndarray:
    """(count, d, d) sums of w x x^T, where `curvature` gives the (count, rows) weights w <= 1 of each block."""
    dim, where, dtype = records.dim, records.place, records.dtype
    grid = exact.grid_of(records.bound) if records.capacity else None

    def scaled(block: Block) -> Iterator[Array]:
        features = where.array(block.features, dtype)
        curvatures = curvature(block)
        if block.weights is not None:
            curvatures = curvatures * where.array(
                exact.BELOW * block.weights, str(curvatures.dtype).removeprefix("torch.")
            )
        for root in where.array(curvatures, dtype) ** 0.5:
            rows = features * root[:, None]
            yield rows if grid is None else exact.truncated(exact.BELOW * rows, grid)

    if where.device == "cuda":
        total = where.zeros(count, dim, dim, dtype="float64")
        for block in records.blocks():
            for index, rows in enumerate(scaled(block)):
                total[index] += rows.T @ rows
        return to_numpy(total).astype(dtype)
    sums = np.zeros((count, dim, dim))
    product = np.zeros((dim, dim), dtype)
    syrk = dsyrk if records.capacity else ssyrk
    for block in records.blocks():
        for matrix, rows in zip(sums, scaled(block), strict=True):
            # both transposed: what BLAS calls column-major; only one triangle is computed, in place
            syrk(1.0, to_numpy(rows).T, beta=0.0, c=product.T, lower=1, overwrite_c=1)
            matrix += product
    for matrix in sums:
        mirror(matrix)
    return sums.astype(dtype, copy=False)
