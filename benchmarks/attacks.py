"""How close attacks come to what is certified: both bounds at epsilon 1, for every method of full batches.

The attacker sees all releases, or the returned model alone.
"""

import math
import time

import numpy as np

from benchmarks.timing import table, title, verdict
from dpstudy import methods
from dpstudy.auditing.canaries import PACK, Game, game_of, play
from dpstudy.auditing.many_runs import bounds
from dpstudy.methods.problem import Problem
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.gaussian import composed_mu

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
        problem, parameters = Problem(60_000, shape, 10, Budget(EPSILON, DELTA)), methods.parameters(name, settings)
        for sees_model in (False, True) if name != "kernel_mean" else (False,):
            game = game_of(name, parameters, problem, pack=pack, sees_model=sees_model)
            present, absent, seconds = _played(game, rows)
            lower = {entry["bound"]: entry["epsilon_lower"] for entry in bounds(game, present, absent, CONFIDENCE)}
            spread = math.sqrt((present.var() + absent.var()) / 2)
            share = (present.mean() - absent.mean()) / spread / composed_mu(game.plan.events)
            lowest = lowest if sees_model else min(lowest, lower["gaussian-dp"])
            shown = (f"{lower[kind]:.3f}" for kind in ("gaussian-dp", "clopper-pearson"))
            speed, sees = f"{len(present) / seconds:,.0f}", "model" if sees_model else "releases"
            certified = certify(game.plan.events, DELTA).epsilon
            found.append((case, sees, f"{len(present):,}", speed, *shown, f"{certified:.3f}", f"{share:.2f}"))
            print(*found[-1], sep="  ", flush=True)
    head = ("method", "sees", "runs a side", "a second", "Gaussian DP", "Clopper-Pearson", "certified", "share of mu")
    table(head, found)
    if (rows or 0) >= RUNS:
        print(f"goal: Gaussian DP at least {REACHED:g} with a million runs: {verdict(lowest >= REACHED)}")
    else:
        print(f"goal: Gaussian DP at least {REACHED:g} with a million runs (--rows {RUNS}); fewer prove less")


def _played(game: Game, rows: int | None) -> tuple[np.ndarray, np.ndarray, float]:
    """The statistics of runs with a canary and without, and the seconds that they took."""
    started, parts = time.monotonic(), []
    while sum(len(part) for part, _ in parts) < (rows or RUNS):
        parts.append(play(game, _AT_ONCE))
        if rows is None and time.monotonic() - started > SECONDS:
            break
    present, absent = (np.concatenate(side) for side in zip(*parts, strict=True))
    return present, absent, time.monotonic() - started
