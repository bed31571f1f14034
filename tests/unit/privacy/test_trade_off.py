"""The trade-off curve of a ledger: no attack does better, the best one nearly as well, and old ledgers have none."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpstudy.cell.bound import releases_of
from dpstudy.privacy import loss_distributions
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import EXPONENTIAL, Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.trade_off import trade_off
from dpstudy.tables.words import ledger_in_words, trade_off_in_words

GRAM = Event("gram", "gaussian", 2.0, 1.0, 4)
CHOICE = Event("choice", EXPONENTIAL, 2.0, 1.0)
ITERATED = Event("gradient", "iterated-gaussian", 5.0, 1.0, 1000, "shuffle", 0.02, epochs=20)
SECRET = Event("gradient", "iterated-gaussian", 5.0, 1.0, 1000, "shuffle", 0.02, epochs=20, secret_order=True)


def ledger_of(*events, delta=1e-5, **more):
    return build_ledger(events, Budget("2", delta), n=1000, unit="record", noise="secure", **more)


def test_of_gaussian_dp_it_is_the_known_curve():
    found = ledger_of(GRAM)["trade_off"]
    assert found["mu"] == 1.0
    for rate in (0.01, 0.001):
        assert found["true_positives"][f"{rate:g}"] == pytest.approx(norm.cdf(norm.ppf(rate) + 1), rel=1e-8)
    assert found["right"] == pytest.approx(norm.cdf(0.5), rel=1e-8)
    assert found["epsilons"]["1e-05"] == ledger_of(GRAM)["epsilon"] and list(found["epsilons"]) == [
        "0.001", "0.0001", "1e-05", "1e-06", "1e-07"
    ]  # fmt: skip


def best(noise, rate, count, false_positives, sign, runs=400_000):
    """What the likelihood ratio reaches against sampled releases, by simulation: true positives, and right guesses."""
    rng = np.random.default_rng(5)
    part = rng.random((runs, count)) < rate
    out, in_ = (noise * rng.standard_normal((runs, count)) + shift for shift in (0, part))
    scores = [sign * np.log1p(rate * np.expm1((2 * x - 1) / (2 * noise**2))).sum(1) for x in (out, in_)][::sign]
    thresholds = np.quantile(scores[0], [1 - a for a in false_positives])
    right = ((scores[1] > 0).mean() + (scores[0] <= 0).mean()) / 2
    return [float((scores[1] > threshold).mean()) for threshold in thresholds], float(right)


@pytest.mark.parametrize(("noise", "rate", "count"), [(0.8, 0.1, 8), (1.0, 0.5, 3), (0.5, 0.01, 5)])
def test_no_attack_on_sampled_releases_does_better_and_the_best_nearly_as_well(noise, rate, count):
    found = trade_off([Event("g", "gaussian", noise, 1.0, count, "poisson", rate)], 1e-5, math.inf)
    assert found["mu"] is None
    reached, guessed = zip(*(best(noise, rate, count, (0.01, 0.001), sign) for sign in (1, -1)), strict=True)
    for place, bound in enumerate(found["true_positives"].values()):
        most = max(caught[place] for caught in reached)
        assert most <= bound + 4 * math.sqrt(bound / 400_000) and bound <= 1.25 * most
    assert max(guessed) <= found["right"] + 0.003 and found["right"] - 0.5 <= 1.15 * (max(guessed) - 0.5) + 0.003


@pytest.mark.parametrize(
    ("events", "gaussian"),
    [((CHOICE,), False), ((GRAM, CHOICE), False), ((ITERATED,), True), ((SECRET,), False),
     ((Event("g", "gaussian", 1.5, 1.0, 20, "poisson", 0.02, trials=5.0),), False),
     ((Event("g", "gaussian", 2.0, 1.0, 50, "poisson", 0.05, part="train"),
       Event("score", "gaussian", 9.0, 1.0, part="validation")), False),
     ((Event("g", "gaussian", 1.1, 1.0, 10, "truncated-poisson", 0.1, largest=300, units=1000),), False)],
)  # fmt: skip
def test_every_kind_of_release_has_one_that_is_no_worse_than_epsilon_says(events, gaussian):
    ledger = ledger_of(*events)
    found, odds = ledger["trade_off"], math.exp(ledger["epsilon"])
    assert (found["mu"] is not None) == gaussian
    assert 0.5 <= found["right"] <= (odds + 1e-5) / (1 + odds) * (1 + 1e-8)
    for rate, caught in found["true_positives"].items():
        assert float(rate) <= caught <= min(1, odds * float(rate) + 1e-5) * (1 + 1e-8)
    epsilons = list(found["epsilons"].values())
    assert epsilons == sorted(epsilons) and epsilons[2] == pytest.approx(ledger["epsilon"], rel=1e-9)


def test_randomised_response_has_its_own():
    """One choice at eps = 1: e/(1 + e) of the guesses are right, and no more."""
    choice = Event("choice", EXPONENTIAL, 1.0, 1.0)
    assert trade_off([choice], 1e-5, 1.0)["right"] == pytest.approx(math.e / (1 + math.e), rel=1e-3)


def test_it_composes_nothing_that_certification_has_not_composed(monkeypatch):
    events = [Event("g", "gaussian", 1.05, 1.0, 777, "poisson", 0.013)]
    epsilon = ledger_of(*events)["epsilon"]
    made = loss_distributions._composed.cache_info().misses
    trade_off(events, 1e-5, epsilon * (1 + 1e-12))  # not what the cache has
    assert loss_distributions._composed.cache_info().misses == made


def test_what_is_not_proved_has_none_and_older_ledgers_are_told_without():
    assert "trade_off" not in ledger_of(GRAM, no_guarantee="The noise was shared.")
    assert "trade_off" not in ledger_of(Event("points", "local-sensitivity-gaussian", 3.0, None))
    ledger = ledger_of(GRAM)
    older = {key: value for key, value in ledger.items() if key != "trade_off"}
    assert releases_of(older) == releases_of(ledger)
    assert trade_off_in_words(older) == "" and "guesses" not in ledger_in_words(older)["others"]
    assert ledger_in_words(ledger)["others"].endswith(
        "Someone who knows all other records and sees the model guesses whether a coin let you take part rightly at "
        "most 69.2 % of the time; whoever knows all other records and sees the model recognises, of those who took "
        "part, at most 9.3 % at 1 % false positives, at most 1.9 % at 0.1 % false positives."
    )
