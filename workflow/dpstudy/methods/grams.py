"""The Gram matrix of records in one pass: a private sum."""

import numpy as np
import torch

from dpstudy.methods.records import Records
from dpstudy.methods.sufficient_statistics import add_gram, mirror

_ROWS = 8192


def gram(records: Records) -> np.ndarray:
    """(d, d) float32 sum of x x^T over mapped records; products are float32, their sum is float64.

    On a CPU each block is a symmetric rank-k update, half the work of a matrix product.
    """
    if records.device.type == "cuda":
        total = torch.zeros(records.dim, records.dim, dtype=torch.float64, device=records.device)
        for block in records.blocks(max(_ROWS, 1 << 16)):
            total += block.features.T @ block.features
        return total.to(torch.float32).cpu().numpy()
    found = np.zeros((records.dim, records.dim))
    for block in records.blocks(_ROWS):
        add_gram(found, block.features.numpy())
    mirror(found)
    return found.astype(np.float32)
