"""How close attacks come to what is certified: both bounds at epsilon 1, for every method of full batches."""

import time

import numpy as np

from benchmarks.timing import table, title, verdict
from dpstudy import methods
from dpstudy.auditing.canaries import PACK, game_of, play
from dpstudy.auditing.many_runs import bounds
from dpstudy.methods.problem import Problem
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget

EPSILON, DELTA, CONFIDENCE = "1", 1e-5, 0.999
REACHED = 0.93  # of the Gaussian-DP bound, with a million runs
RUNS, SECONDS = 1_000_000, 60  # a side, unless they take longer
_AT_ONCE = 2_000  # runs between two looks at the clock
_MANY = 193  # canaries of one training where no step decomposes a matrix
SGD = {"learning_rate": 1.0, "clipping_norm": 0.7, "steps": 6}
NORMALISATION = {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 15.0}
CASES = {  # method, settings, canaries of one training
    "least squares": ("least_squares", {}, _MANY),
    "least squares, published": ("least_squares", {"variant": "published"}, _MANY),
    "covariance": ("feature_covariance", {}, _MANY),
    "covariance, published": (
        "feature_covariance",
        {"variant": "published", "steps": 3, "learning_rate": 1.0},
        _MANY,
    ),
    "newton": ("newton", {}, PACK),
    "newton, one Hessian": ("newton", {"preconditioner": "shared"}, _MANY),
    "newton, published": ("newton", {"variant": "published"}, PACK),
    "gradients": ("first_order", SGD, _MANY),
    "gradients, sigmoid": ("first_order", SGD | {"loss": "sigmoid", "bias": -10.0}, _MANY),
    "gradients, normalised": ("first_order", SGD | {"steps": 4, "normalisation": NORMALISATION}, _MANY),
    "kernel means": ("kernel_mean", {"projection": "none"}, PACK),  # ten canaries, of a class each
    "kernel means, projected": ("kernel_mean", {}, PACK),
}


def run(threads: int, repeats: int, rows: int | None = None) -> None:
    """Print the bounds.

    Args:
        rows: runs a side of each method, however long they take; None: as many as a minute allows, a million at most.
    """
    import torch

    torch.set_num_threads(threads)
    title(f"Lower bounds at epsilon {EPSILON}, delta {DELTA:g}, {100 * CONFIDENCE:g} % confidence ({threads} thread)")
    found, lowest = [], 1.0
    for case, (name, settings, pack) in CASES.items():
        shape = (50, 1, 1) if "normalisation" in settings else (50,)
        problem = Problem(60_000, shape, 10, Budget(EPSILON, DELTA))
        game = game_of(name, methods.parameters(name, settings), problem, pack=pack)
        started, parts = time.monotonic(), []
        while sum(len(part) for part, _ in parts) < (rows or RUNS):
            parts.append(play(game, _AT_ONCE))
            if rows is None and time.monotonic() - started > SECONDS:
                break
        present, absent = (np.concatenate(side) for side in zip(*parts, strict=True))
        speed = len(present) / (time.monotonic() - started)
        lower = {entry["bound"]: entry["epsilon_lower"] for entry in bounds(game, present, absent, CONFIDENCE)}
        certified = certify(game.plan.events, DELTA).epsilon
        lowest = min(lowest, lower["gaussian-dp"])
        shown = (f"{lower[kind]:.3f}" for kind in ("gaussian-dp", "clopper-pearson"))
        found.append((case, f"{len(present):,}", f"{speed:,.0f}", *shown, f"{certified:.3f}"))
        print(*found[-1], sep="  ", flush=True)
    table(("method", "runs a side", "a second", "Gaussian DP", "Clopper-Pearson", "certified"), found)
    if (rows or 0) >= RUNS:
        print(f"goal: Gaussian DP at least {REACHED:g} with a million runs: {verdict(lowest >= REACHED)}")
    else:
        print(f"goal: Gaussian DP at least {REACHED:g} with a million runs (--rows {RUNS}); fewer prove less")
