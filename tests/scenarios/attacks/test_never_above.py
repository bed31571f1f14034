"""Twenty attacks at each of four epsilons: no bound is above what is certified, at a level chosen for all of them.

That would hold of bounds that are always zero, too: most are large enough to tell, and half the noise is told.
"""

import numpy as np
import pytest

from dpstudy.auditing.many_runs import attack
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.noise import NoiseSource
from tests.unit.auditing.test_canaries import NORMALISATION, SGD, game

REPETITIONS = 20
RUNS = {"1": 24_000, "2": 8_000, "4": 3_000, "8": 1_500}  # a side, so that the bound on mu reaches 0.6 of epsilon
BOUNDS = 2 * REPETITIONS * len(RUNS)  # Clopper-Pearson and Gaussian-DP
CONFIDENCE = 1 - 1e-4 / BOUNDS
LEAST_NOISE = {"normalisation": NORMALISATION | {"noise_multiplier": 30.0}}
CHEAP = {  # method, settings, repetitions: full batches, thousands of runs a second
    "least squares": ("least_squares", {}, 7),
    "least squares, published": ("least_squares", {"variant": "published"}, 1),
    "gradients": ("first_order", SGD | {"steps": 3}, 5),
    "gradients, normalised": ("first_order", SGD | {"steps": 2} | LEAST_NOISE, 2),
    "covariance": ("feature_covariance", {"variant": "published", "steps": 2, "learning_rate": 1.0}, 1),
}
PACK = 193  # canaries of one training: more runs a second
DEAR = {  # method, settings, runs: each once
    "samples": ("first_order", SGD | {"steps": 4, "batch_size": 20_000}, 1500),
    "iteration": (
        "iterated_sgd",
        {"learning_rate": 1e-3, "clipping_norm": 1.0, "batch_size": 20_000, "epochs": 1},
        1500,
    ),
    "newton": ("newton", {"variant": "published", "steps": 1}, 1500),
    "kernel means": ("kernel_mean", {"projection": "none", "frequencies": 16}, 100),
}


def bounds(name, settings, epsilon, runs, pack=PACK):
    """The bounds of an attack, and what is certified."""
    played = game(name, settings, epsilon, pack)
    certified = certify(played.plan.events, 1e-5).epsilon
    return {entry["bound"]: entry["epsilon_lower"] for entry in attack(played, runs, CONFIDENCE)}, certified


@pytest.mark.parametrize("epsilon", RUNS)
def test_no_bound_is_above_what_is_certified(epsilon):
    cheap = [(name, settings) for name, settings, times in CHEAP.values() for _ in range(times)]
    found = [bounds(*case, epsilon, RUNS[epsilon]) for case in cheap]
    found += [bounds(name, settings, epsilon, runs, 61) for name, settings, runs in DEAR.values()]
    assert len(found) == REPETITIONS
    assert all(max(lower.values()) <= certified for lower, certified in found), found
    shares = [lower["gaussian-dp"] / certified for lower, certified in found[: len(cheap)]]
    assert np.median(shares) > 0.6 and min(shares) > 0.4, shares


@pytest.mark.parametrize("epsilon", RUNS)
@pytest.mark.parametrize("case", CHEAP)
def test_half_the_noise_is_above_at_every_epsilon(case, epsilon, monkeypatch):
    draw = NoiseSource._draw
    monkeypatch.setattr(NoiseSource, "_draw", lambda self, shape, std, *more: draw(self, shape, std / 2, *more))
    lower, certified = bounds(*CHEAP[case][:2], epsilon, RUNS[epsilon] // 4)
    assert lower["gaussian-dp"] > certified
