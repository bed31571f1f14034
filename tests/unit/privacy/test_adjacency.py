import math

import numpy as np
import pytest
from scipy.stats import norm

from dpstudy.privacy import gaussian
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.adjacency import epsilons_by_adjacency, replacing_epsilon
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger_events import to_ledger

DELTA = 1e-5
FULL = Event("sum", "gaussian", 4.0, 1.0)


def ledger(*events, delta=DELTA, guarantee="proved"):
    found = certify(events, delta)
    stated = {"adjacency": found.adjacency, "epsilon": found.epsilon, "delta": delta, "guarantee": guarantee}
    return stated | {"events": to_ledger(events)}


def test_a_gaussian_release_has_the_textbook_numbers():
    by = epsilons_by_adjacency(ledger(FULL))
    assert by["add-remove-one"] == by["zero-out"] == pytest.approx(gaussian.epsilon_of(0.25, DELTA))
    # Replacing moves a sum of norm-1 vectors by up to 2: the exact delta of a Gaussian whose mean moves by that.
    epsilon = by["replace-one"]
    delta = norm.cdf(-epsilon / 0.5 + 0.25) - math.exp(epsilon) * norm.cdf(-epsilon / 0.5 - 0.25)
    assert delta == pytest.approx(DELTA, rel=1e-6)


def mixture_delta(epsilon, rate, sigma):
    """delta of one Poisson-sampled release between two data sets that differ in one record, +1 in one and -1 in the
    other: both directions, by summing over a fine grid."""
    x = np.linspace(-1 - 12 * sigma, 1 + 12 * sigma, 400_001)
    density = [(1 - rate) * norm.pdf(x, 0, sigma) + rate * norm.pdf(x, mean, sigma) for mean in (1, -1)]
    return max(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), x) for p, q in (density, density[::-1]))


@pytest.mark.parametrize(("rate", "sigma"), [(0.5, 1.0), (0.1, 2.0), (0.9, 0.7)])
def test_replacing_in_a_sampled_release_is_bounded_and_removing_is_no_bound(rate, sigma):
    event = Event("gradient", "gaussian", sigma, 1.0, 1, "poisson", rate)
    bound, removing = replacing_epsilon([event], DELTA), certify([event], DELTA).epsilon
    assert mixture_delta(bound, rate, sigma) <= DELTA < mixture_delta(removing, rate, sigma)
    assert 2 * removing < bound < 3 * removing


def test_two_steps_are_no_better_than_the_closed_form_where_there_is_one():
    poisson = Event("gradient", "gaussian", 4.0, 1.0, 3, "poisson", 0.999999)
    closed = replacing_epsilon([Event("gradient", "gaussian", 4.0, 1.0, 3)], DELTA)
    assert closed <= replacing_epsilon([poisson], DELTA) <= 1.35 * closed


def test_what_has_no_closed_form_goes_by_two_steps():
    choice = Event("choice", "exponential", 10.0, 1.0)
    assert replacing_epsilon([choice], DELTA) == pytest.approx(0.2, rel=1e-3)  # pure: twice its epsilon
    best = Event("gradient", "gaussian", 8.0, 1.0, 2, "poisson", 0.1, trials=3.0)
    parts = [Event("a", "gaussian", 4.0, 1.0, part="train"), Event("b", "gaussian", 9.0, 1.0, part="validation")]
    for events in ([best], parts):
        once = certify(events, DELTA).epsilon
        epsilon = replacing_epsilon(events, DELTA)
        assert 2 * once < epsilon < 3 * once
    smaller = replacing_epsilon(parts, DELTA) / 2
    # What it says is what two steps at some smaller delta give.
    low, high = 1e-9, DELTA
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if certify(parts, middle).epsilon > smaller else (low, middle)
    assert (1 + math.exp(smaller)) * low == pytest.approx(DELTA, rel=1e-3)


def test_a_shuffled_pass_has_no_epsilon_for_adding_a_record():
    by = epsilons_by_adjacency(ledger(Event("gradient", "gaussian", 3.0, 1.0, 40, "shuffle", 0.1, epochs=4)))
    assert by["add-remove-one"] is None and by["replace-one"] > 2 * by["zero-out"] > 0


def test_a_zeroed_unit_still_takes_a_place_in_a_batch_that_is_cut():
    cut = Event("gradient", "gaussian", 4.0, 1.0, 5, "truncated-poisson", 0.1, largest=12, units=100)
    by = epsilons_by_adjacency(ledger(cut))
    assert by["zero-out"] == by["replace-one"] > 2 * by["add-remove-one"] > 0
    whole = epsilons_by_adjacency(ledger(Event("gradient", "gaussian", 4.0, 1.0, 5, "poisson", 0.1)))
    assert whole["zero-out"] == whole["add-remove-one"]


def test_nothing_is_said_of_what_nothing_proves():
    assert set(epsilons_by_adjacency(ledger(FULL, guarantee="claimed")).values()) == {None}
    assert replacing_epsilon([Event("sum", "gaussian", 0.0, 1.0)], DELTA) == math.inf


def test_where_no_smaller_delta_pays_for_two_steps_there_is_no_bound():
    """(1 + e^epsilon(delta')) delta' stays above delta for every delta' that arithmetic reaches."""
    assert replacing_epsilon([Event("gradient", "gaussian", 0.02, 1.0, 10, "poisson", 0.5)], DELTA) == math.inf
