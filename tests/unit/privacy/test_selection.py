"""What choices and the best of several runs cost: against slow computations, and against what they really tell."""

import math
import secrets
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting.rdp import compute_epsilon
from scipy.stats import norm

from dpstudy.privacy import gaussian, selection
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import EXPONENTIAL, Event
from dpstudy.privacy.ledger import build_ledger, check_releases
from dpstudy.privacy.ledger_events import to_ledger
from dpstudy.privacy.ledger_sums import total
from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.renyi import RDP_ORDERS, rdp_curve
from dpstudy.tables.words import event_in_words

DELTA = 1e-5
GRAM = Event("gram", "gaussian", 6.0, 1.0, part="train")
CHOICE = Event("choice", EXPONENTIAL, 1 / 0.7, 1.0, part="validation")
STEPS = Event("gradient", "gaussian", 1.5, 1.0, 200, "poisson", 0.02, part="train", trials=10.0)
SCORE = Event("score", "gaussian", 8.0, 1.0, part="validation", trials=10.0)


@pytest.mark.parametrize(("mu", "choices"), [(0.3, [0.5]), (0.8, [0.2, 0.9]), (0.0, [1.3])])
def test_delta_is_that_of_the_distributions(mu, choices):
    """The hockey-stick divergence of N(mu, 1) x randomised responses against N(0, 1) x their mirror, on a grid."""
    points = np.linspace(-12, 12, 200_001)
    for epsilon in (-0.4, 0.1, 0.8, 1.6):
        found = 0.0
        for answers in np.ndindex(*(2,) * len(choices)):
            with_unit = math.prod(
                1 / (1 + math.exp(-eps if a else eps)) for a, eps in zip(answers, choices, strict=True)
            )
            without = math.prod(1 / (1 + math.exp(eps if a else -eps)) for a, eps in zip(answers, choices, strict=True))
            if mu:
                density = with_unit * norm.pdf(points - mu) - math.exp(epsilon) * without * norm.pdf(points)
                found += np.maximum(density, 0).sum() * (points[1] - points[0])
            else:
                found += max(0.0, with_unit - math.exp(epsilon) * without)
        assert selection.delta_of(epsilon, mu, choices) == pytest.approx(found, abs=1e-9)


def test_epsilon_is_where_delta_is_met():
    for mu, choices in ((0.3, [0.5]), (1.0, [0.2, 0.3])):
        epsilon = selection.epsilon_of(mu, choices, DELTA)
        assert selection.delta_of(epsilon, mu, choices) <= DELTA < selection.delta_of(epsilon - 1e-9, mu, choices)
    mu = gaussian.mu_of(0.8, DELTA)
    left = selection.largest_choice(mu, 1.0, DELTA)
    assert 0.2 < left < 1.0 and selection.epsilon_of(mu, [left], DELTA) == pytest.approx(1.0, abs=1e-9)
    assert selection.largest_choice(gaussian.mu_of(1.1, DELTA), 1.0, DELTA) == 0.0


def chances(scores, epsilon, words=4000):
    """How often `choose` takes each candidate, over evenly spread words."""
    drawn = [selection.choose(scores, epsilon, (2 * k + 1) * 2**256 // (2 * words)) for k in range(words)]
    return np.bincount(drawn, minlength=len(scores)) / words


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_choice_has_the_chances_of_the_exponential_mechanism(epsilon):
    scores = [10.0, 12.0, 11.0, 3.0, 12.0]
    weights = np.exp(epsilon * (np.array(scores) - 12))
    assert chances(scores, epsilon) == pytest.approx(weights / weights.sum(), abs=2e-3)


def test_a_unit_that_only_adds_to_scores_changes_chances_by_no_more_than_epsilon():
    rng = np.random.default_rng(secrets.randbits(60))
    largest = 0.0
    for _ in range(300):
        scores = rng.integers(0, 8, size=4).astype(float)
        ratios = np.log(exact(scores + rng.integers(0, 2, size=4), 1.0) / exact(scores, 1.0))
        largest = max(largest, np.abs(ratios).max())
    assert 0.5 < largest <= 1.0 + 1e-12  # and half of epsilon would not do


def exact(scores, epsilon):
    weights = np.exp(epsilon * (scores - scores.max()))
    return weights / weights.sum()


def test_extreme_scores_are_chosen_among_without_rounding():
    assert selection.choose([0.0, 60_000.0], 8.0, 2**255) == 1
    assert selection.choose([5.0, 7.0, 7.0], math.inf, 2**256 - 1) == 1  # no noise: the first of the best
    assert {selection.choose([1.0, 1.0], 1.0, word) for word in (0, 2**256 - 1)} == {0, 1}


def test_secure_choices_differ_and_are_counted_once():
    source = NoiseSource("secure", "cell")
    source.chosen("choice", [1.0, 2.0], 1.0)
    check_releases([Event("choice", EXPONENTIAL, 1.0, 1.0)], source.drawn)
    with pytest.raises(RuntimeError, match="already drawn"):
        source.chosen("choice", [1.0, 2.0], 1.0)
    drawn = [NoiseSource("secure", "cell").chosen("choice", [0.0] * 1000, 1.0) for _ in range(3)]
    assert len(set(drawn)) > 1
    drawn = [NoiseSource("seeded", "cell", seed).chosen("choice", [0.0] * 1000, 1.0) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("mean", [3.0, 20.0])
@pytest.mark.parametrize("multiplier", [2.0, 6.0])
def test_the_best_of_several_scores_tells_no_more_than_certified(mean, multiplier):
    """A record shifts each run's score by 1. What the best of a geometric number of runs then tells, exactly, is more
    than one run tells, and no more than certified, for adding and for removing the record."""
    score = Event("score", "gaussian", multiplier, 1.0, trials=mean)
    certified = certify([score], DELTA).epsilon
    points = np.linspace(-15 * multiplier, 15 * multiplier, 400_001)
    low, high = (density_of_best(points, shift, multiplier, mean) for shift in (0.0, 1.0))
    step = points[1] - points[0]
    told = max(told_by(high, low, step), told_by(low, high, step))
    once = certify([Event("score", "gaussian", multiplier, 1.0)], DELTA).epsilon
    assert once * 1.005 < told <= certified


def density_of_best(points, shift, std, mean):
    """Of the largest of K normal numbers, K geometric: the derivative of p F/(1 - (1 - p) F)."""
    below, p = norm.cdf(points, shift, std), 1 / mean
    return norm.pdf(points, shift, std) * p / (1 - (1 - p) * below) ** 2


def told_by(first, second, step) -> float:
    """Epsilon at DELTA of two densities."""
    low, high = 0.0, 50.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        delta = np.maximum(first - math.exp(middle) * second, 0).sum() * step
        low, high = (low, middle) if delta <= DELTA else (middle, high)
    return high


def ledger_of(*events, n=50_000):
    return build_ledger(events, Budget("2", DELTA), n=n, unit="record", noise="secure")


@pytest.mark.parametrize("events", [(GRAM, CHOICE), (STEPS, SCORE)])
def test_the_worse_part_counts(events):
    first, second = (certify([event], DELTA).epsilon for event in events)
    both = certify(events, DELTA).epsilon
    assert both == max(first, second) and first != second
    everywhere = Event("second", "gaussian", 9.0, 1.0)
    assert certify((GRAM, CHOICE, everywhere), DELTA).epsilon == max(
        certify((GRAM, everywhere), DELTA).epsilon, certify((CHOICE, everywhere), DELTA).epsilon
    )


def test_words_say_what_is_repeated_and_where():
    (text,) = map(event_in_words, to_ledger([STEPS, SCORE]))
    assert "geometric, mean 10" in text and "on a Poisson sample of the train split" in text
    assert "of the validation split" in event_in_words(CHOICE.to_json())


def test_a_total_adds_up_what_touches_the_same_part():
    chosen, repeated = ledger_of(GRAM, CHOICE), ledger_of(STEPS, SCORE)
    once = total([(chosen, 1)], DELTA)
    assert once["epsilon"] >= chosen["epsilon"] * (1 - 1e-6)  # by Renyi DP: never less
    both = total([(chosen, 3), (repeated, 2)], DELTA)
    assert max(total([(chosen, 3)], DELTA)["epsilon"], repeated["epsilon"]) < both["epsilon"]
    apart = sum(total([(ledger, seeds)], DELTA)["epsilon"] for ledger, seeds in ((chosen, 3), (repeated, 2)))
    assert both["epsilon"] < apart and both["accountant"] == "RDP (dp-accounting)"


def test_a_unit_may_be_in_another_part_for_another_entry_of_the_same_records():
    """In train where one chooses among settings, in validation where the other repeats: neither part's sum has that."""
    chosen, repeated = ledger_of(GRAM, CHOICE), ledger_of(STEPS, SCORE)
    ledgers = [(chosen, 2), (repeated, 1)]
    same, any_parts = (total(ledgers, DELTA, same_parts=same)["epsilon"] for same in (True, False))
    touched = [replace(GRAM, part=None)] * 2, [replace(SCORE, part=None)]
    mixed = sum(np.array(rdp_curve(events, RDP_ORDERS)) for events in touched)
    assert compute_epsilon(RDP_ORDERS, mixed, DELTA)[0] <= any_parts and same <= any_parts
    assert any_parts < sum(total([one], DELTA)["epsilon"] for one in ledgers)


def test_events_that_make_no_sense_are_refused():
    for wrong in (
        {"part": "test"},
        {"trials": 0.5},
        {"mechanism": EXPONENTIAL, "trials": 3.0},
        {"sampling": "shuffle", "sampling_rate": 0.1, "epochs": 1, "trials": 3.0},
    ):
        with pytest.raises(ValueError):
            Event(**{"name": "x", "mechanism": "gaussian", "noise_multiplier": 1.0, "sensitivity": 1.0} | wrong)
