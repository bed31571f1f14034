"""Poisson batches cut to a size: the accountant against the exact loss of small data sets; what is drawn and said."""

import math
import secrets
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm

from dpstudy.core.errors import StudyError
from dpstudy.methods.first_order import Parameters, plan
from dpstudy.methods.problem import Problem
from dpstudy.methods.sampling import batches
from dpstudy.privacy import gaussian, loss_distributions
from dpstudy.privacy.accountants import COUPLED, PLD, RDP, UNSAMPLED
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import TRUNCATED, Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.ledger_sums import total
from dpstudy.privacy.renyi import rdp_epsilon, rough_epsilon
from dpstudy.privacy.truncation import coupled_epsilon, cut_probability, log_tail

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


@pytest.mark.slow
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


@pytest.mark.parametrize("units", [3, 40, 5000, 2_000_000])
@pytest.mark.parametrize("rate", [1e-3, 0.05, 0.6])
def test_the_chance_of_a_cut_is_bounded_from_above_and_closely(units, rate):
    """Against the sum of exact probabilities, down to e^-3000, where SciPy has 0 from e^-745 on."""
    mean, std = units * rate, math.sqrt(units * rate * (1 - rate))
    for reach in (0.5, 5, 12, 40, 80):
        largest = math.ceil(mean + reach * std)
        if largest >= units:
            assert log_tail(units, units, rate) == -math.inf
            break
        with mpmath.workdps(40):
            q, first = mpmath.mpf(rate), largest + 1
            term = total = mpmath.binomial(units, first) * q**first * (1 - q) ** (units - first)
            for k in range(first, units):
                term *= q / (1 - q) * (units - k) / (k + 1)
                total += term
                if term < total * mpmath.mpf(10) ** -20:
                    break
            exact = float(mpmath.log(total))
        assert exact <= log_tail(largest, units, rate) <= min(0.0, exact + (0.05 if exact < -12 else 2))


@pytest.mark.parametrize("sigma", [0.7, 1.5])
@pytest.mark.parametrize(("others", "rate", "largest"), [(7, 0.1, 5), (9, 0.05, 4), (9, 0.05, 6)])
def test_the_coupling_with_whole_batches_holds_by_brute_force(others, rate, largest, sigma):
    """Of data sets of n and n + 1 records; and the epsilon that is told is one where the inequality holds."""
    without, with_it = (density(others, rate, largest, sigma, present) for present in (False, True))
    whole = [density(others, rate, others + 1, sigma, present) for present in (False, True)]
    tau, step = binom.sf(largest, others + 1, rate), GRID[1] - GRID[0]
    event = Event("g", "gaussian", sigma, 1.0, 1, TRUNCATED, rate, largest=largest, units=others)

    def whole_epsilon(delta):
        return max(exact_epsilon(*whole, delta), exact_epsilon(*whole[::-1], delta))

    for delta in (1e-2, 1e-3):
        exact = max(exact_epsilon(with_it, without, delta), exact_epsilon(without, with_it, delta))
        found = coupled_epsilon(whole_epsilon, [event], delta)
        assert exact <= found < math.inf and whole_epsilon(delta) < found
        losses = [np.maximum(p - math.exp(found) * q, 0).sum() * step for p, q in (whole, whole[::-1])]
        assert 0.95 * delta < max(losses) + (1 + math.exp(found)) * tau <= delta * (1 + 1e-9)


def test_the_better_of_both_bounds_of_cut_batches_certifies():
    def cut(largest, **more):
        return Event("g", "gaussian", 1.1, 1.0, 10, TRUNCATED, 0.1, largest=largest, units=1000, **more)

    whole = Event("g", "gaussian", 1.1, 1.0, 10, "poisson", 0.1)
    near, far = certify([cut(130)], 1e-6), certify([cut(250)], 1e-16)
    assert near.accountant == PLD, "the coupling has nothing to say of batches that are cut now and then"
    assert far.accountant == RDP + COUPLED and far.epsilon_by["pld"] is None
    assert far.epsilon == pytest.approx(certify([whole], 1e-16).epsilon, rel=1e-6)
    repeated = certify([cut(250, trials=5.0)], 1e-16)
    assert repeated.accountant == RDP + COUPLED
    assert repeated.epsilon == pytest.approx(certify([replace(whole, trials=5.0)], 1e-16).epsilon, rel=1e-6)
    often = certify([cut(130)], 1e-16)  # no coupling, no distributions: a sum may move by twice its sensitivity
    assert often.accountant == UNSAMPLED
    assert often.epsilon == pytest.approx(gaussian.epsilon_of(math.sqrt(10) * 2 / 1.1, 1e-16), rel=1e-12)
    assert certify([cut(130, trials=5.0)], 1e-16).epsilon == math.inf
    once = math.exp(log_tail(150, 1001, 0.1))
    assert cut_probability([cut(150), whole]) == pytest.approx(10 * once, rel=1e-12) and 1e-8 < once < 1e-6
    assert cut_probability([cut(150, trials=5.0)]) == pytest.approx(50 * once, rel=1e-12)


def test_no_rough_bound_of_whole_batches_makes_cut_ones_free(monkeypatch):
    cut = Event("g", "gaussian", 1e4, 1.0, 10, TRUNCATED, 0.1, largest=13, units=100)
    monkeypatch.setattr(loss_distributions, "_composed", lambda events, interval: Accountant())
    assert rough_epsilon([cut], 1e-3) == 0 and loss_distributions.pld_epsilon([cut], 1e-3) == 0.125


class Accountant:
    def get_epsilon(self, delta):
        return 0.125


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


@pytest.mark.slow
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
