"""Passes over shards that are read anew each time: seconds, share of the machine's arithmetic, and peak memory."""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.timing import table, title, verdict
from dpstudy.features import shards

CHILD = Path(__file__).with_name("stream_child.py")
DIM, CLASSES, SHARD_ROWS = 768, 1_000, 80_000
ROWS = (160_000, 320_000, 640_000, 1_280_000)
STEPS, FEWER_STEPS = 10, 2  # at the most rows, and at fewer
NEWTON_CLASSES = 20  # of one step, measured; the other classes are projected
TASKS = ("least_squares", "feature_covariance", "first_order", "newton", "mini_batches")
SHARE, RATIO, GIB = 0.6, 1.2, 8.0  # asked: at least, at most, at most
ABOUT = """\
d = {DIM}, m = {CLASSES:,}, float16 shards of {SHARD_ROWS:,} rows, {threads} thread(s), wall seconds: median and best
of a task's passes, reading the shards included. T = {STEPS} at the most rows, {FEWER_STEPS} at fewer. A Gram counts as
n d (d + 1) operations, against the best square float32 product of numpy and torch in the same process; a gradient
pass is set against its two matrix products alone, on records in memory. Least squares' first pass checks the shards'
hashes. Each row of the table is a process of its own: GiB is its peak memory.
"""


def write_shards(folder: Path, first: int, count: int) -> None:
    """Shards number `first` to first + count - 1, of random features, as the extraction leaves them."""
    paths = []
    for number in range(first, first + count):
        generator = np.random.default_rng(number)
        features = generator.standard_normal((SHARD_ROWS, DIM), dtype=np.float32).astype(np.float16)
        labels = generator.integers(0, CLASSES, SHARD_ROWS).astype(np.int32)
        ids = np.array([f"{number}-{row}" for row in range(SHARD_ROWS)], dtype=object)
        paths.append(folder / f"part-{number:05d}.parquet")
        shards.write_shard(paths[-1], shards.FeatureTable(ids, features, labels, shape=(DIM,)), private=True)
    shards.write_manifest(
        folder / "manifest.json",
        dataset="synthetic",
        features="synthetic",
        split=folder.name,
        shard_paths=paths,
        classes=[str(label) for label in range(CLASSES)],
        private=True,
    )


def measure(task: str, folders: list[Path], steps: int, threads: int, repeats: int) -> dict:
    """Run one task in a process of its own; stream_child.py says what it measures."""
    request = {"task": task, "folders": list(map(str, folders)), "steps": steps, "threads": threads}
    request |= {"dim": DIM, "classes": CLASSES, "newton_classes": NEWTON_CLASSES, "repeats": repeats}
    done = subprocess.run(
        [sys.executable, str(CHILD), json.dumps(request)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"the child failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def run(threads: int, repeats: int, rows: int = ROWS[-1]) -> None:
    """Print what each method's passes cost at growing numbers of rows, up to `rows`."""
    title("(e) Streaming from shards")
    print(ABOUT.format(**globals(), threads=threads))
    counts = [count for count in ROWS if count <= rows] or list(ROWS[:1])
    found, lines, folders = {}, [], []
    with tempfile.TemporaryDirectory() as temporary:
        for before, count in zip([0, *counts], counts, strict=False):
            folders.append(Path(temporary) / f"from-{before}")
            write_shards(folders[-1], before // SHARD_ROWS, (count - before) // SHARD_ROWS)
            for task in TASKS:
                steps = STEPS if count == counts[-1] else FEWER_STEPS
                found[task, count] = measure(task, folders, steps, threads, repeats)
                lines += _lines(task, count, found[task, count])
    table(("task", "pass", "rows", "median s", "best s", "us a row", "of peak", "x products", "GiB"), lines)
    _verdicts(found, counts)


def _lines(task: str, count: int, result: dict) -> list[tuple]:
    lines = []
    for name, values in result["seconds"].items():
        median, best = statistics.median(values), min(values)
        share, ratio = _share(name, count, median, result), _ratio(name, median, result)
        lines.append(
            (task, name, f"{count:,}", f"{median:.2f}", f"{best:.2f}", f"{1e6 * median / count:.1f}")
            + ("" if share is None else f"{share:.0%}", "" if ratio is None else f"{ratio:.2f}", f"{result['gib']:.1f}")
        )
    return lines


def _share(name: str, count: int, seconds: float, result: dict) -> float | None:
    return count * DIM * (DIM + 1) / seconds / result["peak"] if "Gram" in name else None


def _ratio(name: str, seconds: float, result: dict) -> float | None:
    return seconds / result["products"] if "gradient" in name else None


def _verdicts(found: dict, counts: list[int]) -> None:
    most = {task: found[task, counts[-1]] for task in TASKS}
    print()
    for task, result in most.items():
        for name, values in result["seconds"].items():
            shown = f"{task}, {name}, {counts[-1]:,} rows"
            median = statistics.median(values)
            if (share := _share(name, counts[-1], median, result)) is not None:
                print(f"{shown}: {share:.0%} of the peak, at least {SHARE:.0%} asked: {verdict(share >= SHARE)}")
            if (ratio := _ratio(name, median, result)) is not None:
                print(f"{shown}: {ratio:.2f} of the products, at most {RATIO} asked: {verdict(ratio <= RATIO)}")
    gib = max(result["gib"] for result in found.values())
    print(f"peak memory of any process: {gib:.1f} GiB, less than {GIB:.0f} asked: {verdict(gib < GIB)}")
    hessians, gradient = most["newton"]["seconds"].values()
    hours = (statistics.median(hessians) * CLASSES / NEWTON_CLASSES + statistics.median(gradient)) / 3600
    print(f"newton: one step of all {CLASSES:,} classes, projected from {NEWTON_CLASSES}: {hours:.2f} hours")
