"""Cost curves: Snakemake against cells, extraction against images, each method against records, dimensions, classes."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import yaml

from benchmarks import workflow
from benchmarks.curve import Curve
from benchmarks.timing import title

CELLS = (100, 1_000, 10_000)
IMAGES = (500, 2_000, 8_000)
RECORDS, DIMENSIONS, CLASSES = (5_000, 20_000, 80_000), (64, 256, 1_024), (10, 50, 250)
USUAL = {"n": 20_000, "d": 256, "m": 10}
METHODS = {
    "least squares": ("least_squares", {}),
    "DP-LS as published": ("least_squares", {"variant": "published"}),
    "DP-FC, 20 steps": ("feature_covariance", {}),
    "Newton, 1 step": ("newton", {}),
    "DP-SGD, 40 full batches": (
        "first_order",
        {"learning_rate": 1.0, "clipping_norm": 1.0, "batch_size": "full", "steps": 40},
    ),
    "kernel means": ("kernel_mean", {}),
    "iterated SGD, 1 pass": (
        "iterated_sgd",
        {"learning_rate": 0.5, "clipping_norm": 1.0, "batch_size": 500, "epochs": 1},
    ),
}
NETWORK_RECORDS, NETWORKS = (64, 256, 1_024), ("wrn-10-1", "wrn-16-4")
STEP = {"learning_rate": 1.0, "clipping_norm": 1.0, "normalised": True, "steps": 1}


def seconds_of(task: Callable[[], object], repeats: int) -> float:
    """CPU seconds, the least of some runs."""
    taken = []
    for _ in range(repeats):
        started = time.process_time()
        task()
        taken.append(time.process_time() - started)
    return min(taken)


def run(threads: int, repeats: int, out: str | None = None) -> None:
    """Print every curve; with `out`, draw them there."""
    title("Cost curves")
    print(
        f"{threads} thread(s). Methods and extraction: CPU seconds, least of {repeats}; Snakemake: wall seconds, once."
    )
    print("Slopes are those of logarithms: 1 is proportional, 2 quadratic.\n", flush=True)
    methods(repeats, out)
    networks(repeats, out)
    extraction(repeats, out)
    cells(out)


def methods(repeats: int, out: str | None) -> None:
    """Preparing and fitting, features in memory."""
    from dpstudy import fit

    rows, labels = np.eye(1_000, 64, dtype=np.float32), np.arange(1_000) % 10
    for method, options in METHODS.values():  # what is imported and made once is not measured
        fit(method, rows, labels, epsilon=1.0, delta=1e-6, **options)
    for key, sizes, name in (("n", RECORDS, "records"), ("d", DIMENSIONS, "dimensions"), ("m", CLASSES, "classes")):
        curve = Curve(f"methods-{name}", name, f"training against {name}")
        for size in sizes:
            shape = USUAL | {key: size}
            generator = np.random.default_rng(0)
            features = generator.standard_normal((shape["n"], shape["d"]), dtype=np.float32)
            labels = generator.integers(0, shape["m"], shape["n"])
            for label, (method, options) in METHODS.items():

                def task(method=method, options=options, features=features, labels=labels, classes=shape["m"]):
                    return fit(method, features, labels, epsilon=1.0, delta=1e-6, classes=classes, **options)

                curve.add(label, size, seconds_of(task, repeats))
        curve.finish(out)
        print()


def networks(repeats: int, out: str | None) -> None:
    """One full-batch step of Wide ResNets on images of 32 x 32; instance smoothing has a benchmark of its own."""
    from dpstudy import fit

    curve = Curve("networks", "records", "one pass of a network against records")
    for network in NETWORKS:
        for size in NETWORK_RECORDS:
            images = np.random.default_rng(0).standard_normal((size, 3 * 32 * 32), dtype=np.float32)
            labels = np.arange(size) % 10

            def task(network=network, images=images, labels=labels):
                told = {"shape": (3, 32, 32), "classes": 10, "network": network, "batch_size": "full"}
                return fit("network_dpsgd", images, labels, epsilon=1.0, delta=1e-6, **told, **STEP)

            curve.add(network, size, seconds_of(task, repeats))
    curve.finish(out)
    print()


def extraction(repeats: int, out: str | None) -> None:
    """ScatterNet features of images in memory."""
    from dpstudy.features import open_extractor

    extractor = open_extractor({"extractor": "scatternet"})
    curve = Curve("extraction", "images", "ScatterNet against images")
    for side, channels in ((28, 1), (32, 3)):
        for size in IMAGES:
            images = np.random.default_rng(0).integers(0, 256, (size, side, side, channels)).astype(np.uint8)
            taken = seconds_of(lambda images=images: extractor(images), repeats)
            curve.add(f"{side} x {side}, {channels} channel(s)", size, taken)
    curve.finish(out)
    print()


def cells(out: str | None) -> None:
    """Until the first job, and when nothing is to be done."""
    curve = Curve("cells", "cells", "Snakemake against cells")
    for size in CELLS:
        study = workflow.study(entries=size // (2 * len(workflow.EPSILONS)))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            workflow.lay_out(folder)
            (folder / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False), encoding="utf-8")
            taken = workflow.first_job(folder)
            curve.add("to the first job", size, taken)
            print(f"{size:,} cells: first job after {taken:.1f} s", flush=True)  # what comes next may take an hour
            workflow.pretend_complete(folder)
            taken, printed = workflow.finished(folder)
            if "Nothing to be done" not in printed:
                raise SystemExit(f"something was to be done:\n{printed[:3000]}")
            curve.add("nothing to do", size, taken)
            print(f"{size:,} cells: nothing to do after {taken:.1f} s", flush=True)
    curve.finish(out)
