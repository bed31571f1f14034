"""One training with many canaries: what right guesses prove, and that networks are attacked so."""

import math
import secrets

import numpy as np
import pytest
from scipy.stats import binom

from dpstudy import methods
from dpstudy.auditing.canaries import game_of
from dpstudy.auditing.one_run import one_run, play_once
from dpstudy.jobs.audits import deep
from dpstudy.methods.problem import Problem
from dpstudy.privacy.audit import guessed, guesses_to_make
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.gaussian import composed_mu
from dpstudy.privacy.noise import NoiseSource


def network(epsilon="8", steps=4, **settings):
    settings = {"network": "wrn-10-1", "learning_rate": 0.1, "clipping_norm": 1.0, "steps": steps} | settings
    problem = Problem(60_000, (1, 12, 12), 3, Budget(epsilon, 1e-5))
    return game_of("network_dpsgd", methods.parameters("network_dpsgd", settings), problem)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_guesses_of_randomised_response_bound_its_epsilon_at_the_stated_level(epsilon):
    """Each coin told truthfully with probability e^eps/(1 + e^eps): epsilon-DP exactly."""
    rng = np.random.default_rng(secrets.randbits(60))
    right = rng.binomial(1000, 1 / (1 + math.exp(-epsilon)), size=400)
    bounds = np.array([guessed(count, 1000, 1000, 0.0, 0.9) for count in right])
    assert np.mean(bounds > epsilon) < 0.1 + 5 * math.sqrt(0.09 / 400)  # the level
    assert np.mean(bounds > epsilon) > 0.01 and bounds.mean() > 0.6 * epsilon  # and it is used up: no idle bound


def test_chances_are_those_of_the_theorem_summed_slowly():
    correct, guesses, canaries, delta, epsilon = 70, 90, 400, 1e-3, 0.6
    rate = math.exp(epsilon) / (1 + math.exp(epsilon))
    tail = sum(binom.pmf(k, guesses, rate) for k in range(correct, guesses + 1))
    extra = max(
        sum(binom.pmf(k, guesses, rate) for k in range(correct - i, correct)) / i for i in range(1, correct + 1)
    )
    chance = tail + 2 * canaries * delta * extra
    assert guessed(correct, guesses, canaries, delta, 1 - chance * 1.001) == pytest.approx(epsilon, abs=2e-3)
    assert guessed(correct, guesses, canaries, delta, 0.999) < guessed(correct, guesses, canaries, 0.0, 0.999)


def test_nothing_is_proved_by_half_of_the_guesses_and_nonsense_is_refused():
    assert guessed(50, 100, 100, 1e-5, 0.999) == 0.0 == guessed(0, 10, 10, 0.0, 0.999)
    with pytest.raises(ValueError):
        guessed(11, 10, 10, 0.0, 0.999)


def test_how_many_to_guess_is_fixed_beforehand():
    few, many = guesses_to_make(1000, 2.5, 1e-5, 0.95), guesses_to_make(1000, 0.5, 1e-5, 0.95)
    assert 10 <= many < few < 300
    assert guesses_to_make(1000, 0.01, 1e-5, 0.95) == 334  # nothing is to be expected of one run there
    for mu in (0.5, 1.0, 2.5, 5.0):
        assert guesses_to_make(100, mu, 1e-5, 0.95) <= 100


@pytest.mark.slow
def test_evidence_is_that_of_a_gaussian_with_the_mu_of_the_ledger():
    """On average over trainings: of one alone it varies by 0.1 of what is planned."""
    played, found = network(), []
    assert deep(played)
    for _ in range(5):
        present, evidence = play_once(played, 150)
        apart = evidence[present].mean() - evidence[~present].mean()
        found.append(apart / math.sqrt((evidence[present].var() + evidence[~present].var()) / 2))
    planned = composed_mu(played.plan.events)
    assert 0.7 * planned < np.mean(found) < 1.2 * planned  # canaries' gradients are not quite orthogonal


@pytest.mark.slow  # nine seconds
def test_a_bound_is_below_what_is_certified_and_tells_something():
    (found,) = one_run(network("8"), 150, 0.95)
    assert found["bound"] == "one-run" and found["runs"] == 150
    assert 0.2 < found["epsilon_lower"] <= 8


@pytest.mark.slow  # nine seconds each
@pytest.mark.parametrize("mode", ["seeded", "secure"])
def test_an_eighth_of_the_noise_is_told(monkeypatch, mode):
    """The releases of epsilon 1 with noise for 11: the bound is above 1, whatever the network's random start."""
    released = NoiseSource.released
    monkeypatch.setattr(
        NoiseSource, "released", lambda self, name, query, std, *more: released(self, name, query, std / 8, *more)
    )
    (found,) = one_run(network("1"), 150, 0.95, mode)
    assert found["epsilon_lower"] > 1


@pytest.mark.slow  # nine seconds
def test_batches_that_are_samples_and_long_gradients_are_attacked_too():
    (found,) = one_run(network("8", 6, batch_size=30_000, network="wrn-10-2"), 60, 0.9)
    assert 0 <= found["epsilon_lower"] <= 8
