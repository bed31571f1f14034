"""Sums under secure noise: by how much one record of a million moves them, and what exactness costs."""

import numpy as np

from benchmarks.timing import alternate, medians, table, title
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.grams import gram
from dpstudy.methods.hessians import class_hessians
from dpstudy.methods.records import Records
from dpstudy.methods.row_map import RowMap
from dpstudy.methods.sufficient_statistics import accumulate
from tests.unit.methods.exact_releases import RELEASES, moved_by, problem_of, rows_of

N, DIMS = 1_300_000, (5, 10)
PATTERNS = ("equal", "half and half", "random")
SIZES = ((20_000, 1_024, 10), (20_000, 1_024, 100), (100_000, 128, 10))  # records, features, classes of the timings


def run(threads: int, repeats: int, rows: int = N) -> None:
    """Print, of each release, the movement over the sensitivity; then CPU seconds of passes, float32 and exact."""
    title("By how much the first record moves a sum, over its sensitivity")
    print(f"n = {rows:,}; the most of {len(PATTERNS)} kinds of records at d = {' and '.join(map(str, DIMS))}\n")
    records = [rows_of(pattern, rows, dim) for pattern in PATTERNS for dim in DIMS]
    found = []
    for name in RELEASES:
        worst = [
            max(moved_by(name, x, problem_of(len(x), x.shape[1], secure)) for x in records) for secure in (False, True)
        ]
        found.append((name, f"{worst[0]:.4f}", f"{worst[1]:.6f}"))
    table(("release", "float32", "exact"), found)
    title("\nWhat it costs")
    print(f"CPU seconds of a pass over records that are held, median of {repeats} alternating repeats\n")
    for size in SIZES:
        _time(*size, repeats)


def _time(n: int, dim: int, classes: int, repeats: int) -> None:
    drawn = np.random.default_rng(0)
    x, y = drawn.standard_normal((n, dim)).astype(np.float32), drawn.integers(0, classes, n)
    weights = drawn.standard_normal((classes, dim)).astype(np.float32) / 30
    tasks = {}
    for kind, capacity in (("float32", None), ("exact", n + 1)):
        read = Records.read([(x, y)], classes, capacity=capacity)
        clipped = read.mapped(RowMap(clip=1.0))
        tasks |= {
            ("statistics, clipping included", kind): lambda e=capacity: accumulate(
                [(x, y)], classes, 1.0, exact=bool(e)
            ),
            ("clipping", kind): lambda r=read: r.mapped(RowMap(clip=1.0)),
            ("Gram", kind): lambda r=clipped: gram(r),
            ("gradient", kind): lambda r=read: clipped_sum(r, weights, Head("softmax", 0.0, 1.0)),
            ("Hessians of 3 classes", kind): lambda r=clipped: class_hessians(r, weights, "softmax", range(3)),
        }
    seconds = medians(alternate(tasks, repeats))
    print(f"{n:,} records of {dim:,} features, {classes} classes")
    names = dict.fromkeys(name for name, _ in tasks)
    pairs = [(name, seconds[name, "float32"], seconds[name, "exact"]) for name in names]
    table(("", "float32", "exact", "ratio"), [(name, f"{a:.3f}", f"{b:.3f}", f"{b / a:.2f}") for name, a, b in pairs])
    print()
