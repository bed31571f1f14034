"""The Gram matrix of records in one pass: a private sum."""

import functools
import operator
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch

from dpstudy.methods.records import Records
from dpstudy.methods.sufficient_statistics import add_gram, mirror, one_thread_each

_ROWS = 8192


def gram(records: Records) -> np.ndarray:
    """(d, d) float32 sum of x x^T over mapped records; products are float32, their sum is float64.

    On a CPU each block is a symmetric rank-k update, half the work of a matrix product; each of torch's threads makes
    its own, while the next blocks are mapped.
    """
    if records.device.type == "cuda":
        total = torch.zeros(records.dim, records.dim, dtype=torch.float64, device=records.device)
        for block in records.blocks(max(_ROWS, 1 << 16)):
            total += block.features.T @ block.features
        return total.to(torch.float32).cpu().numpy()
    threads = torch.get_num_threads()
    sums = [np.zeros((records.dim, records.dim)) for _ in range(threads)]
    running: deque[Future] = deque()
    with one_thread_each(threads > 1), ThreadPoolExecutor(threads) as pool:
        for number, block in enumerate(records.blocks(_ROWS)):
            if len(running) == threads:  # the one that adds to the sum that comes next
                running.popleft().result()
            running.append(pool.submit(add_gram, sums[number % threads], block.features.numpy()))
        for last in running:
            last.result()
    found = functools.reduce(operator.add, sums)
    mirror(found)
    return found.astype(np.float32)
