"""Class-diagonal Hessian blocks of a linear head: private sums over records, some classes at a time.

The block of class j is sum_i w_ij x_i x_i^T with w = p (1 - p), p the class's probability: no per-example Hessian is
formed. Each w lies in [0, 1/4]. As in `clipped_sum` products of blocks are float32 and their sum is float64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import ssyrk

from dpstudy.arrays import Array, place_of, scores_of, sigmoid, softmax, to_numpy
from dpstudy.methods.records import Block, Records
from dpstudy.methods.sufficient_statistics import mirror


def class_hessians(records: Records, weights: Array, loss: str, classes: range) -> np.ndarray:
    """(len(classes), d, d) float32 blocks at (m, d) `weights`, without a bias."""

    def curvature(block: Block) -> Array:
        return _curvatures(block, weights, loss, classes)

    return _weighted_grams(records, len(classes), curvature)


def shared_hessian(records: Records, weights: Array) -> np.ndarray:
    """(d, d) float32 sum over all classes of the softmax blocks: the weight of record i is 1 - sum_j p_ij^2."""

    def curvature(block: Block) -> Array:
        return _curvatures(block, weights, "softmax", range(len(weights))).sum(0)[None]

    return _weighted_grams(records, 1, curvature)[0]


def _curvatures(block: Block, weights: Array, loss: str, classes: range) -> Array:
    """(len(classes), rows) second derivatives; 0 where a record's scores overflow."""
    part = slice(classes.start, classes.stop)
    with np.errstate(all="ignore"):
        if loss == "sigmoid":
            p = sigmoid(scores_of(weights[part], block.features))
        else:
            p = softmax(scores_of(weights, block.features))[part]
        found = p * (1 - p)
    return place_of(found).xp.where(found == found, found, 0.0)


def _weighted_grams(records: Records, count: int, curvature: Callable[[Block], Array]) -> np.ndarray:
    """(count, d, d) sums of w x x^T, for the (count, rows) weights w that `curvature` gives each block."""
    if records.place.device == "cuda":
        total = records.place.zeros(count, records.dim, records.dim, dtype="float64")
        for block in records.blocks():
            for index, weight in enumerate(curvature(block)):
                total[index] += (block.features * weight[:, None]).T @ block.features
        return to_numpy(total).astype(np.float32)
    found = np.zeros((count, records.dim, records.dim))
    product = np.zeros((records.dim, records.dim), np.float32)
    for block in records.blocks():
        for matrix, root in zip(found, curvature(block) ** 0.5, strict=True):
            scaled = to_numpy(block.features * root[:, None])
            # both transposed: what BLAS calls column-major; only one triangle is computed, in place
            ssyrk(1.0, scaled.T, beta=0.0, c=product.T, lower=1, overwrite_c=1)
            matrix += product
    for matrix in found:
        mirror(matrix)
    return found.astype(np.float32)
