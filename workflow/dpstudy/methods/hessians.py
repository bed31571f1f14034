"""Class-diagonal Hessian blocks of a linear head: private sums over records, some classes at a time.

The block of class j is sum_i w_ij x_i x_i^T with w = p (1 - p), p the class's probability: no per-example Hessian is
formed. Each w lies in [0, 1/4].
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy.linalg.blas import ssyrk

from dpstudy.methods.records import Block, Records
from dpstudy.methods.sufficient_statistics import mirror


def class_hessians(records: Records, weights: torch.Tensor, loss: str, classes: range) -> np.ndarray:
    """(len(classes), d, d) float32 blocks at (m, d) `weights`, without a bias."""

    def curvature(block: Block) -> torch.Tensor:
        return _curvatures(block, weights, loss, classes)

    return _weighted_grams(records, len(classes), curvature)


def shared_hessian(records: Records, weights: torch.Tensor) -> np.ndarray:
    """(d, d) float32 sum over all classes of the softmax blocks: the weight of record i is 1 - sum_j p_ij^2."""

    def curvature(block: Block) -> torch.Tensor:
        return _curvatures(block, weights, "softmax", range(len(weights))).sum(0, keepdim=True)

    return _weighted_grams(records, 1, curvature)[0]


def _curvatures(block: Block, weights: torch.Tensor, loss: str, classes: range) -> torch.Tensor:
    """(len(classes), rows) second derivatives; 0 where a record's scores overflow."""
    part = slice(classes.start, classes.stop)
    if loss == "sigmoid":
        p = torch.sigmoid(weights[part] @ block.features.T)
    else:
        p = torch.softmax(weights @ block.features.T, 0)[part]
    return (p * (1 - p)).nan_to_num_(0.0)


def _weighted_grams(records: Records, count: int, curvature: Callable[[Block], torch.Tensor]) -> np.ndarray:
    """(count, d, d) sums of w x x^T, for the (count, rows) weights w that `curvature` gives each block."""
    if records.device.type == "cuda":
        total = torch.zeros(count, records.dim, records.dim, device=records.device)
        for block in records.blocks():
            for index, weight in enumerate(curvature(block)):
                total[index] += (block.features * weight[:, None]).T @ block.features
        return total.cpu().numpy()
    found = np.zeros((count, records.dim, records.dim), np.float32)
    for block in records.blocks():
        for matrix, root in zip(found, curvature(block).sqrt(), strict=True):
            scaled = (block.features * root[:, None]).numpy()
            # both transposed: what BLAS calls column-major; only one triangle is computed, in place
            ssyrk(1.0, scaled.T, beta=1.0, c=matrix.T, lower=1, overwrite_c=1)
    for matrix in found:
        mirror(matrix)
    return found
