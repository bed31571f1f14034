"""The certifying accountant's privacy loss distributions, against the exact Gaussian formula and counted cuts."""

import math

import pytest
from scipy.stats import binom

from dpstudy.privacy import gaussian
from dpstudy.privacy.distributions_certificate import (
    CUT,
    beside_cuts,
    chance_of_a_cut,
    clear,
    events_sampled,
    pld,
    uncut,
)
from dpstudy.privacy.events import Event

GRAM = Event("gram", "gaussian", 2.0, 1.0).to_json()
STEPS = Event("gradient", "gaussian", 1.5, 1.0, 200, "poisson", 0.02).to_json()
CUTS = Event("gradient", "gaussian", 1.5, 1.0, 10, CUT, 0.1, largest=150, units=1000).to_json()
SHORT = CUTS | CUTS["params"]


@pytest.mark.parametrize("delta", [1e-4, 1e-7])
def test_full_batches_have_the_exact_epsilon_or_a_little_more(delta):
    exact = gaussian.epsilon_of(0.5, delta)
    assert exact * (1 - 1e-9) <= pld([GRAM], delta) <= exact * 1.001


def test_rounding_is_taken_from_delta():
    assert clear([STEPS], 1e-5) and not clear([STEPS], 1e-10)
    assert pld([STEPS], 1e-13) == math.inf


def test_a_cut_costs_what_its_chance_allows():
    assert events_sampled([GRAM, SHORT]) and events_sampled([STEPS]) and not events_sampled([GRAM])
    assert [event["sampling"] for event in uncut([STEPS, SHORT, GRAM])] == ["poisson", "poisson", "none"]
    chance = chance_of_a_cut([GRAM, SHORT])
    assert chance == pytest.approx(10 * binom.sf(150, 1001, 0.1), rel=1e-5) and chance_of_a_cut([GRAM, STEPS]) == 0


@pytest.mark.parametrize(("chance", "delta"), [(5e-5, 1e-3), (1e-6, 1e-3), (4e-7, 1e-5)])
def test_what_cuts_cost_is_within_delta(chance, delta):
    def epsilon_at(rest):
        return gaussian.epsilon_of(0.5, rest)

    epsilon = beside_cuts(epsilon_at, chance, delta)
    assert epsilon_at(delta) < epsilon < math.inf
    assert 0.9 * delta < gaussian.delta_of(epsilon, 0.5) + (1 + math.exp(epsilon)) * chance <= delta * (1 + 1e-9)
    assert (
        beside_cuts(epsilon_at, 0.0, delta) == epsilon_at(delta) and beside_cuts(epsilon_at, delta, delta) == math.inf
    )
