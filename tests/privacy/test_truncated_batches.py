"""Poisson batches cut to a size: the accountant against the exact loss of small data sets; what is drawn and said."""

import math
import secrets

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm

from dpstudy.errors import StudyError
from dpstudy.methods.first_order import Parameters, plan
from dpstudy.methods.problem import Problem
from dpstudy.methods.sampling import batches
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import TRUNCATED, Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.ledger_sums import total
from dpstudy.privacy.renyi import rdp_epsilon

GRID = np.linspace(-40, 40, 160001)


def density(others: int, rate: float, largest: int, sigma: float, present: bool) -> np.ndarray:
    """Of the noisy sum where `others` records contribute -1, and one more +1 if `present`."""
    found = np.zeros_like(GRID)
    for count in range(others + 1):
        chance = binom.pmf(count, others, rate)
        for taken, share in ((0, 1 - rate * present), (1, rate * present)):
            size = count + taken
            if size <= largest:
                found += chance * share * norm.pdf(GRID, taken - count, sigma)
                continue
            kept = largest / size if taken else 0.0  # that the record is in the random subset
            found += chance * share * (1 - kept) * norm.pdf(GRID, -largest, sigma)
            found += chance * share * kept * norm.pdf(GRID, 1 - (largest - 1), sigma)
    return found


def exact_epsilon(p, q, delta):
    step = GRID[1] - GRID[0]

    def excess(epsilon):
        return np.maximum(p - math.exp(epsilon) * q, 0).sum() * step - delta

    return brentq(excess, 0, 50) if excess(0) > 0 else 0.0


@pytest.mark.parametrize("sigma", [0.7, 1.5])
@pytest.mark.parametrize(("others", "rate", "largest"), [(1, 0.5, 1), (3, 0.5, 2), (6, 0.3, 2), (12, 0.15, 2)])
def test_no_pair_of_neighbours_loses_more_than_is_accounted(others, rate, largest, sigma):
    """Whichever of the two has the public number of records, or more."""
    without, with_it = (density(others, rate, largest, sigma, present) for present in (False, True))
    for delta in (1e-2, 1e-3):
        exact = max(exact_epsilon(with_it, without, delta), exact_epsilon(without, with_it, delta))
        for units in (others, others + 1, others + 3)[: 1 if delta == 1e-2 else 3]:
            if rate * units > largest:
                continue
            event = Event("g", "gaussian", sigma, 1.0, 1, TRUNCATED, rate, largest=largest, units=units)
            assert certify([event], delta).epsilon >= exact * (1 - 1e-4)


def test_poisson_accounting_would_be_wrong():
    """A record that takes part may push another out."""
    without, with_it = (density(1, 0.5, 1, 0.7, present) for present in (False, True))
    exact = exact_epsilon(with_it, without, 1e-2)
    assert certify([Event("g", "gaussian", 0.7, 1.0, 1, "poisson", 0.5)], 1e-2).epsilon < 0.95 * exact
    with pytest.raises(ValueError, match="below their expected size"):
        Event("g", "gaussian", 0.7, 1.0, 1, TRUNCATED, 0.5, largest=1, units=3)


@pytest.mark.parametrize(("rate", "largest"), [(0.05, 52), (0.1, 110), (0.3, 300)])
def test_fewer_records_lose_less(rate, largest):
    """Records that de-duplication dropped are known to nobody: the public number must be the worst case."""
    found = [
        certify([Event("g", "gaussian", 1.0, 1.0, 50, TRUNCATED, rate, largest=largest, units=units)], 1e-5).epsilon
        for units in (round(largest / rate), round(0.97 * largest / rate), round(0.8 * largest / rate), 100)
    ]
    assert found == sorted(found, reverse=True)


def test_batches_that_are_hardly_ever_cut_cost_what_poisson_batches_cost():
    poisson = certify([Event("g", "gaussian", 3.0, 1.0, 2000, "poisson", 0.08)], 1e-5).epsilon
    cut = [Event("g", "gaussian", 3.0, 1.0, 2000, TRUNCATED, 0.08, largest=largest, units=50_000) for largest in
           (4500, 4100, 4010)]  # fmt: skip
    wide, near, deep = (certify([event], 1e-5).epsilon for event in cut)
    assert wide == pytest.approx(poisson, rel=1e-4) and poisson < near < deep
    with pytest.raises(ValueError, match="no bound for truncated batches"):
        rdp_epsilon(cut, 1e-5)


def test_large_batches_are_cut_to_a_uniform_subset():
    rows, rate, largest, steps = 60, 0.2, 13, 4000
    taken, sizes = np.zeros(rows), []
    generator = np.random.default_rng(secrets.randbits(60))
    for index in batches(rows, rate, steps, "poisson", generator, largest=largest):
        assert len(set(index.tolist())) == len(index)
        taken[index] += 1
        sizes.append(len(index))
    assert max(sizes) == largest
    share = binom.sf(largest - 1, rows, rate)
    assert np.mean(np.array(sizes) == largest) == pytest.approx(share, abs=6 * math.sqrt(share / steps))
    assert np.ptp(taken) < 12 * math.sqrt(taken.mean()), "no place is favoured"


def test_schedule_event_and_ledger_agree():
    problem = Problem(200, (4,), 3, Budget("4", 1e-4))
    options = {"learning_rate": 1.0, "clipping_norm": 0.5, "batch_size": 10, "steps": 6}
    found = plan(Parameters(**options, largest_batch=12), problem)
    (event,) = found.events
    assert (event.sampling, event.largest, event.units, event.sampling_rate) == (TRUNCATED, 12, 200, 0.05)
    assert Event.from_json(event.to_json()) == event
    plain = plan(Parameters(**options), problem).events[0]
    assert event.noise_multiplier > plain.noise_multiplier
    ledger = build_ledger(found.events, problem.budget, n=200, unit="record", noise="secure")
    assert 3.98 < ledger["epsilon"] <= 4 and ledger["epsilon_by"]["rdp"] is None
    assert total([(ledger, 3)], 1e-4)["epsilon"] > 5
    free = plan(Parameters(**options | {"steps": None}, noise_multiplier=1.0, largest_batch=12), problem)
    one_more = certify([Event.from_json(free.events[0].to_json() | {"count": free.facts["steps"] + 1})], 1e-4)
    assert certify(free.events, 1e-4).epsilon <= 4 < one_more.epsilon
    for wrong in ({"batch_size": "full"}, {"largest_batch": 8}, {"sampling": "shuffle"}):
        with pytest.raises(StudyError, match="largest_batch"):
            Parameters(**options | {"largest_batch": 12} | wrong)
