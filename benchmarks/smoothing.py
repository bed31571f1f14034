"""Passes over all pairs of points that instance smoothing makes: seconds and peak memory against n."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.timing import table, title, verdict

CHILD = Path(__file__).with_name("smoothing_child.py")
SIZES = (12_500, 25_000, 50_000)
DIM, CLASSES, QUERIES, BATCH = 64, 10, 2_000, 1_024
MOST_GIB = 4.0  # asked of the largest
ABOUT = """\
p = {DIM}, {threads} thread(s), CPU seconds of one run. Neighbours and sensitivities: all points against all, once an
epoch. Gradients: a batch of {BATCH:,} against all points. Scores: {QUERIES:,} new images. Each row is a process of its
own: GiB is its peak memory, torch included; an n x n matrix of float32 would take the last column.
"""


def run(threads: int, repeats: int, rows: int | None = None) -> None:
    """Print the table; `rows` adds a size."""
    title("Instance smoothing: passes over all pairs of points")
    print(ABOUT.format(DIM=DIM, BATCH=BATCH, QUERIES=QUERIES, threads=threads))
    found = []
    for size in sorted({*SIZES, *([rows] if rows else [])}):
        request = {"n": size, "dim": DIM, "classes": CLASSES, "queries": QUERIES, "batch": BATCH, "threads": threads}
        done = subprocess.run([sys.executable, str(CHILD), json.dumps(request)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        found.append((size, json.loads(done.stdout)))
    tasks = list(found[0][1]["seconds"])
    table(
        ("n", *tasks, "GiB", "n x n, GiB"),
        [
            (
                f"{n:,}",
                *(f"{one['seconds'][task]:.1f}" for task in tasks),
                f"{one['gib']:.2f}",
                f"{4 * n * n / 2**30:.0f}",
            )
            for n, one in found
        ],
    )
    largest = found[-1][1]["gib"]
    print(
        f"peak at n = {found[-1][0]:,}: {largest:.2f} GiB, asked at most {MOST_GIB:g}: {verdict(largest <= MOST_GIB)}\n"
    )
