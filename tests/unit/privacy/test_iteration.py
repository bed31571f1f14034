"""Amplification by iteration against an independent optimisation and exact Gaussian pairs; the accounting around it."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import lsq_linear

from dpstudy.privacy import gaussian, iteration
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.calibration import calibrate
from dpstudy.privacy.events import ITERATED, Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.ledger_sums import total
from dpstudy.schema.reading import check
from dpstudy.tables.words import event_in_words

DELTA = 1e-5
NORMALISATION = Event("normalisation_mean", "gaussian", 8.0, 1.0)


def steps_on(batches, epochs, noise_multiplier=2.0, last=0.5, secret=False):
    """An event of batches that hold equally many slots but for the last, which is `last` of full."""
    rate = 1 / (batches - 1 + (last if batches > 1 else 1))
    steps = {"count": batches * epochs, "sampling": "shuffle", "sampling_rate": rate, "epochs": epochs}
    return Event("gradient", ITERATED, noise_multiplier, 1.0, **steps, secret_order=secret)


@pytest.mark.parametrize(("batches", "epochs"), [(1, 3), (4, 1), (3, 2), (4, 3), (7, 5)])
def test_the_pulls_are_the_best_there_are(batches, epochs):
    """Least squares over cumulative pulls A_t <= cumulative shifts, A_T = K, by a bounded solver."""
    steps = batches * epochs
    difference = np.eye(steps) - np.eye(steps, k=-1)  # pulls from cumulative pulls
    for place, closed_form in enumerate(iteration.squared_shifts(batches, epochs)):
        opened = np.cumsum([step % batches == place for step in range(steps)]).astype(float)
        free, end = difference[:, :-1], epochs * difference[:, -1]
        result = lsq_linear(free, -end, bounds=(-np.inf, opened[:-1]), method="bvls", tol=1e-14)
        assert 2 * result.cost == pytest.approx(closed_form, rel=1e-6), place


def exact_mu(factors, place, epochs, noise_multiplier):
    """mu between the last iterates of a chain w <- c_t w (+ 1 unit in batch `place`) + N(0, s^2), with and without the
    unit: both are Gaussian, so it is the difference of means over the standard deviation."""
    mean = variance = 0.0
    for _ in range(epochs):
        for batch, factor in enumerate(factors):
            mean = factor * mean + (batch == place)
            variance = factor**2 * variance + noise_multiplier**2
    return mean / math.sqrt(variance)


@pytest.mark.parametrize(("batches", "epochs"), [(1, 4), (5, 1), (4, 3)])
def test_no_chain_of_contractions_is_told_apart_better(batches, epochs):
    """Quadratic losses of any curvature in the other records; the record itself has a linear loss, the steepest."""
    event, rng = steps_on(batches, epochs), np.random.default_rng(0)
    bounds, _ = iteration.record_mus([event])
    curvatures = [rng.choice([-1.0, 0.0, 1.0, rng.uniform(-1, 1)], size=batches) for _ in range(300)]
    for place, bound in enumerate(bounds):
        worst = max(abs(exact_mu(factors, place, epochs, 2.0)) for factors in curvatures)
        assert worst <= bound * (1 + 1e-12), place
    flat = np.ones(batches)
    assert exact_mu(flat, 0, epochs, 2.0) == pytest.approx(bounds[0]), "attained where no step contracts"
    if epochs == 1:
        for place in range(batches):  # and in one epoch wherever the record is, if its batch forgets all before it
            forgets = np.where(np.arange(batches) == place, 0.0, 1.0)
            assert exact_mu(forgets, place, 1, 2.0) == pytest.approx(bounds[place])


def test_one_batch_is_plain_composition_and_the_last_batch_has_no_cover():
    plain = Event("gradient", "gaussian", 2.0, 1.0, 7)
    alone = steps_on(1, 7)
    assert certify([alone], DELTA).epsilon == pytest.approx(certify([plain], DELTA).epsilon, rel=1e-9)
    mus, shares = iteration.record_mus([steps_on(6, 1)])
    epsilons = [gaussian.epsilon_of(mu, DELTA) for mu in mus]
    assert epsilons[-1] == pytest.approx(gaussian.epsilon_of(1 / 2.0, DELTA))
    assert np.all(np.diff(epsilons) > 0) and shares.sum() == pytest.approx(1) and shares[-1] == pytest.approx(1 / 11)


def test_a_known_order_is_certified_for_its_worst_record():
    events = [NORMALISATION, steps_on(10, 3)]
    mu = math.sqrt(1 / 8**2 + (2 / 10 + 1) / 2**2)
    certificate = certify(events, DELTA, complete=True)
    assert certificate.epsilon == pytest.approx(gaussian.epsilon_of(mu, DELTA), rel=1e-9)
    assert certificate.epsilon == pytest.approx(gaussian.epsilon_of(iteration.record_mus(events)[0].max(), DELTA))
    assert certificate.epsilon_by["exact"] <= certificate.epsilon_by["rdp"] <= certificate.epsilon_by["zcdp"]
    assert certificate.adjacency == "zero-out"


def test_a_share_of_the_records_has_the_target_and_the_worst_has_not():
    def events_at(scale):
        return [NORMALISATION, steps_on(100, 10, scale)]

    scale = calibrate(lambda scale: iteration.for_a_share(events_at(scale), 0.99), Budget("2", DELTA))
    events = events_at(scale)
    assert iteration.share_within(events, 2.0, DELTA) == pytest.approx(99 / 99.5)
    assert iteration.share_within(events, 1.99, DELTA) < 0.99, "and no more noise than that takes"
    assert certify(events, DELTA).epsilon > 2.2
    mu_of_the_99th = math.sqrt(1 / 8**2 + (9 / 100 + 1 / 2) / scale**2)
    assert gaussian.epsilon_of(mu_of_the_99th, DELTA) == pytest.approx(2.0, rel=1e-6)
    everyone = calibrate(lambda scale: iteration.for_a_share(events_at(scale), 1.0), Budget("2", DELTA))
    assert certify(events_at(everyone), DELTA).epsilon == pytest.approx(2.0, rel=1e-6)


def test_a_secret_order_gives_everyone_the_mean_delta():
    events = [NORMALISATION, steps_on(20, 4, secret=True)]
    certificate = certify(events, DELTA, complete=True)
    mean = 0.0
    for place in range(20):
        mu = math.sqrt(1 / 8**2 + (3 / 20 + 1 / (20 - place)) / 2**2)
        normal, epsilon = stats.norm, certificate.epsilon
        delta = normal.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * normal.cdf(-epsilon / mu - mu / 2)
        mean += delta * (0.5 if place == 19 else 1.0) / 19.5
    assert mean == pytest.approx(DELTA, rel=1e-5)
    known = certify([NORMALISATION, steps_on(20, 4)], DELTA)
    assert certificate.epsilon < known.epsilon
    assert certificate.accountant != known.accountant
    twice = certify([*events, *events], DELTA)
    assert twice.epsilon == certify([NORMALISATION, steps_on(20, 4)] * 2, DELTA).epsilon, "several orders: the worst"


def test_a_ledger_says_how_uneven_it_is():
    ledger = build_ledger([steps_on(100, 10)], Budget("1", DELTA), n=1000, unit="record", noise="secure")
    check(ledger, "ledger", "ledger.json")
    assert ledger["epsilon"] > 1 and ledger["guarantee"] == "proved" and ledger["adjacency"] == "zero-out"
    share = iteration.share_within([steps_on(100, 10)], 1.0, DELTA)
    assert 0.5 < share < 0.99
    (sentence,) = ledger["not_accounted"]
    assert f"{math.floor(1000 * share) / 10:g} % of them have epsilon at most 1" in sentence
    assert [Event.from_json(event) for event in ledger["events"]] == [steps_on(100, 10)]
    assert "known order, only the last iterate" in event_in_words(ledger["events"][0])
    secret = build_ledger([steps_on(9, 1, secret=True)], Budget("1", DELTA), n=1000, unit="record", noise="secure")
    check(secret, "ledger", "ledger.json")
    assert "random order" in secret["not_accounted"][0]
    assert Event.from_json(secret["events"][0]).secret_order


def test_seeds_compose_at_their_worst_records():
    event = steps_on(50, 4)
    ledger = build_ledger([event], Budget("1", DELTA), n=1000, unit="record", noise="secure")
    mu = math.sqrt(5 * (3 / 50 + 1) / 2**2)
    assert total([(ledger, 5)], DELTA)["epsilon"] == pytest.approx(gaussian.epsilon_of(mu, DELTA), rel=1e-9)


@pytest.mark.parametrize(
    "changes",
    [
        {"sampling": "none", "epochs": None},
        {"count": 9, "epochs": 2},
        {"count": 9, "epochs": 1, "sampling_rate": 0.3},
        {"mechanism": "gaussian", "secret_order": True},
    ],
)
def test_events_that_the_theorem_does_not_cover_are_refused(changes):
    fields = {"mechanism": ITERATED, "count": 8, "sampling": "shuffle", "sampling_rate": 0.25, "epochs": 2} | changes
    with pytest.raises(ValueError, match="gradient"):
        Event("gradient", noise_multiplier=1.0, sensitivity=1.0, **fields)
