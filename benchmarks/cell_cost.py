"""What a cell costs before it computes: from the start of its process to the first arithmetic on private sums."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.timing import table, title, verdict
from dpstudy.features import shards
from dpstudy.methods.sufficient_statistics import accumulate

CHILD = Path(__file__).with_name("cell_child.py")
ROWS, DIM, CLASSES = 1_437, 64, 10
CELLS = {
    "least_squares": {"method": "least_squares", "sanitise": "full", "accounting": "certified", "tuned_on": "nothing"},
    "first_order": {
        "method": "first_order",
        "learning_rate": 1.0,
        "clipping_norm": 0.1,
        "steps": 10,
        "sanitise": "full",
        "accounting": "certified",
        "tuned_on": "nothing",
    },
}
HEAVY = ("torch", "torchvision", "timm", "opacus", "sklearn", "matplotlib", "pandas", "kymatio", "dp_accounting")
FORBIDDEN = {
    "least_squares": ("torch", "torchvision", "timm", "opacus", "pandas"),
    "first_order": ("torch", "torchvision", "timm", "opacus", "pandas"),
}


def write_inputs(folder: Path) -> None:
    """Feature shards of two splits and the private sums, as the rules before the cell leave them."""
    generator = np.random.default_rng(0)
    for split, rows in (("train", ROWS), ("test", 360)):
        features = generator.standard_normal((rows, DIM), dtype=np.float32)
        labels = generator.integers(0, CLASSES, rows).astype(np.int32)
        ids = np.array([f"{split}-{row}" for row in range(rows)], dtype=object)
        path = folder / split / "part-00000.parquet"
        shards.write_shard(path, shards.FeatureTable(ids, features, labels, shape=(DIM,)), private=True)
        shards.write_manifest(
            folder / split / "manifest.json",
            dataset="synthetic",
            features="synthetic",
            split=split,
            shard_paths=[path],
            classes=[str(label) for label in range(CLASSES)],
            private=True,
        )
        if split == "train":
            accumulate([(features, labels)], CLASSES, 1.0).save(folder / "statistics.safetensors")


def cell(folder: Path, method: str) -> dict:
    """Run one cell in a process of its own; seconds since its start at each stage, and the modules it loaded."""
    request = {"folder": str(folder), "options": CELLS[method], "started": time.monotonic(), "watch": HEAVY}
    done = subprocess.run(
        [sys.executable, str(CHILD), json.dumps(request)], capture_output=True, text=True, check=False, cwd=folder
    )
    if done.returncode:
        sys.exit(f"the cell failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def run(threads: int, repeats: int) -> None:
    """Print the stages of a least-squares and of a first-order cell, and what each imported."""
    title("(d) The fixed cost of a cell")
    print(f"n = {ROWS:,}, d = {DIM}, one seed; wall seconds since the process started, median of {repeats} alternating")
    print("repeats, the page cache warm. Snakemake: what its script mechanism imports before the script's own lines.\n")
    seen = {method: [] for method in CELLS}
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        for repeat in range(repeats + 1):
            for method, results in seen.items():
                result = cell(Path(folder), method)
                if repeat:  # the first warms the page cache
                    results.append(result)
    stages = list(seen["least_squares"][0]["seconds"])
    table(
        ("method", *stages),
        [
            (method, *(f"{statistics.median(result['seconds'][stage] for result in results):.2f}" for stage in stages))
            for method, results in seen.items()
        ],
    )
    print()
    for method, results in seen.items():
        loaded = results[0]["loaded"]
        bad = [name for name in FORBIDDEN[method] if name in loaded]
        print(
            f"{method} loads of {', '.join(HEAVY)}: {', '.join(loaded) or 'none'}; "
            f"none of {', '.join(FORBIDDEN[method])}: {verdict(not bad)}"
        )
