"""The Gram matrix of private records, in one pass."""

import functools
import operator
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from dpstudy.core.arrays import threads_of_products, to_numpy
from dpstudy.methods.records import Records
from dpstudy.methods.sufficient_statistics import add_gram, mirror, one_thread_each

_ROWS = 8192


def gram(records: Records) -> np.ndarray:
    """(d, d) sum of x x^T over mapped records, each times its weight, where records have weights.

    It is float64 where it is exact (exact.py); otherwise products are float32, their sum is float64, and what comes
    back float32.

    On a CPU each block is a symmetric rank-k update, half the work of a matrix product; each thread makes
    its own, while the next blocks are mapped.
    """
    dtype = records.dtype
    if records.place.device == "cuda":
        total = records.place.zeros(records.dim, records.dim, dtype="float64")
        for block in records.blocks(max(_ROWS, 1 << 16)):
            features = records.place.array(block.shared(0.5), dtype)
            total += features.T @ features
        return to_numpy(total).astype(dtype)
    if records.rows <= _ROWS:  # a thread takes longer to start than it would save
        summed = np.zeros((records.dim, records.dim))
        for block in records.blocks(_ROWS):
            add_gram(summed, to_numpy(block.shared(0.5)), dtype)
        return _whole(summed, dtype)
    threads = threads_of_products()
    sums = [np.zeros((records.dim, records.dim)) for _ in range(threads)]
    running: deque[Future] = deque()
    with one_thread_each(threads > 1), ThreadPoolExecutor(threads) as pool:
        for number, block in enumerate(records.blocks(_ROWS)):
            if len(running) == threads:  # the one that adds to the sum that comes next
                running.popleft().result()
            running.append(pool.submit(add_gram, sums[number % threads], to_numpy(block.shared(0.5)), dtype))
        for last in running:
            last.result()
    return _whole(functools.reduce(operator.add, sums), dtype)


def _whole(found: np.ndarray, dtype: str) -> np.ndarray:
    mirror(found)
    return found.astype(dtype, copy=False)
