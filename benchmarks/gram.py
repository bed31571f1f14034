"""The shared Gram matrix against the machine's own peak rate of float32 matrix products."""

import statistics

import numpy as np
import torch

from benchmarks.timing import alternate, table, title
from dpstudy.methods.sufficient_statistics import accumulate

ROWS, CLASSES, SHARD = 60_000, 10, 10_000
DIMS = (3_969, 768)
PEAK_SIZES = (1_024, 2_048, 4_096)


def peak_tasks() -> dict:
    """Square products of two libraries at several sizes: name -> (operations, task)."""
    tasks = {}
    for size in PEAK_SIZES:
        a = np.random.default_rng(size).standard_normal((2, size, size), dtype=np.float32)
        b = torch.from_numpy(a)
        tasks[f"numpy {size:,}"] = (2 * size**3, lambda a=a: a[0] @ a[1])
        tasks[f"torch {size:,}"] = (2 * size**3, lambda b=b: b[0] @ b[1])
    return tasks


def run(threads: int, repeats: int) -> None:
    """Print rates in GFLOP/s of CPU time, and the share of the peak, for each number of features."""
    torch.set_num_threads(threads)
    title("(b) The Gram matrix")
    print(f"n = {ROWS:,} rows in shards of {SHARD:,}, float32, {threads} thread(s), CPU seconds, median of {repeats}")
    print(
        "alternating repeats. A full product takes 2 n d^2 operations, its upper triangle n d (d + 1). The peak is the"
    )
    print("best median over square products of numpy and torch in the same repeats.\n")
    peaks = peak_tasks()
    for dim in DIMS:
        generator = np.random.default_rng(dim)
        shards = [generator.standard_normal((SHARD, dim), dtype=np.float32) for _ in range(ROWS // SHARD)]
        for shard in shards:
            shard *= np.float32(1 / np.sqrt(dim))
        labels = [generator.integers(0, CLASSES, SHARD) for _ in shards]
        tasks = {
            "ours": lambda s=shards, y=labels: accumulate(zip(s, y, strict=True), CLASSES, 1.0),
            "numpy": lambda s=shards: sum(x.T @ x for x in s),
        } | {name: task for name, (_, task) in peaks.items()}
        _print(dim, alternate(tasks, repeats), {name: operations for name, (operations, _) in peaks.items()})


def _print(dim: int, seconds: dict[str, list[float]], peak_operations: dict[str, int]) -> None:
    median = {name: statistics.median(values) for name, values in seconds.items()}
    rates = {name: operations / median[name] / 1e9 for name, operations in peak_operations.items()}
    best = max(rates, key=rates.get)
    full, half = 2 * ROWS * dim**2 / 1e9, ROWS * dim * (dim + 1) / 1e9
    print(f"d = {dim:,}: peak {rates[best]:.0f} GFLOP/s ({best})")
    rows = [
        ("dpstudy: clip, Gram and targets", f"{median['ours']:.2f}", f"{full / median['ours']:.0f}")
        + (f"{half / median['ours']:.0f}", f"{half / median['ours'] / rates[best]:.0%}"),
        ("numpy X.T @ X (uses the symmetry too)", f"{median['numpy']:.2f}", f"{full / median['numpy']:.0f}")
        + (f"{half / median['numpy']:.0f}", f"{half / median['numpy'] / rates[best]:.0%}"),
        ("a full product at the peak rate", f"{full / rates[best]:.2f}", f"{rates[best]:.0f}", "", ""),
    ]
    table(("pass over the rows", "CPU s", "GFLOP/s as full", "as symmetric", "of the peak"), rows)
    print(f"dpstudy takes {median['ours'] * rates[best] / full:.2f} of the time of a full product at the peak rate\n")
