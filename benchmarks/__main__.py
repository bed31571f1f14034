"""Run benchmarks: python -m benchmarks [NAME ...] [--threads N] [--repeats N] [--rows N]."""

import argparse
import importlib
import os
import sys
import time

BENCHMARKS = {
    "head": "linear_head",
    "gram": "gram",
    "exact": "exact",
    "workflow": "workflow",
    "cell": "cell_cost",
    "scatter": "scatter",
    "stream": "stream",
    "network": "network",
    "gpu": "gpu",
    "layers": "layers",
    "dedup": "dedup",
    "lookalikes": "lookalikes",
    "extract": "extract",
    "smoothing": "smoothing",
    "noise": "noise",
    "attack": "attacks",
    "memory": "memory",
    "curves": "curves",
    "projection": "projection",
    "accountant": "accountant",
    "intervals": "intervals",
    "probabilities": "probabilities",
    "persons": "persons",
    "draws": "draws",
    "classes": "rare_classes",
    "families": "families",
    "pictures": "pictures",
    "leaks": "leaks",
    "groups": "groups",
}
LONG = {  # only when named
    *(
        "stream",
        "network",
        "gpu",
        "layers",
        "dedup",
        "lookalikes",
        "extract",
        "smoothing",
        "attack",
        "memory",
        "curves",
        "projection",
        "accountant",
        "exact",
        "intervals",
        "probabilities",
        "persons",
        "draws",
        "classes",
        "families",
        "pictures",
        "leaks",
        "groups",
    )
}
ROWS = ("intervals", "stream", "smoothing", "attack", "exact", "accountant", "gpu", "leaks")  # take --rows


def main() -> int:
    """Parse the command line, fix the threads, and run what was asked for in a fixed order."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}; default: all but {', '.join(LONG)}"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of every matrix product (default 1)")
    parser.add_argument("--repeats", type=int, default=3, help="alternating repeats; medians are printed (default 3)")
    parser.add_argument(
        "--rows",
        type=int,
        help="most rows of `stream` (1,280,000: 2 GB of disk) or `exact`, another n of `smoothing`, runs of `attack`, "
        "images of `gpu`, points of `accountant`, simulated splits of `intervals`, runs of `leaks`",
    )
    parser.add_argument("--study", help="of `memory`: the study that is run, instead of config.yaml")
    parser.add_argument("--out", help="of `curves`, `dedup`, `gpu`: a folder for figures and the numbers behind them")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if options.threads < 1 or options.repeats < 1:
        parser.error("--threads and --repeats must be at least 1")
    # BLAS libraries read these once, when they are loaded: hence before any import of numpy.
    for name in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{name}_NUM_THREADS"] = str(options.threads)
    if options.names not in (["projection"], ["gpu"]):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # CPU seconds are what is compared
    for name, module in BENCHMARKS.items():
        if name in (options.names or BENCHMARKS.keys() - LONG):
            started = time.monotonic()
            more = {"rows": options.rows} if name in ROWS and options.rows else {}
            more |= {"study": options.study} if name == "memory" and options.study else {}
            more |= {"out": options.out} if name in ("curves", "dedup", "gpu") else {}
            importlib.import_module(f"benchmarks.{module}").run(options.threads, options.repeats, **more)
            print(f"({name}: {time.monotonic() - started:.0f} s in all)\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
