"""Lower bounds from attacks, on mechanisms whose epsilon is known."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta as betadist
from scipy.stats import binom, norm

from dpstudy.privacy.audit import ELSEWHERE, distinguished, epsilon_lower, refuted, verdict
from dpstudy.privacy.gaussian import epsilon_of


@pytest.mark.parametrize(("alarms", "misses"), [(0, 0), (3, 100), (250, 7), (40, 900)])
def test_the_bound_is_that_of_exact_binomial_tails(alarms, misses):
    """The largest rate at which so few errors are still as likely as (1 - confidence)/2, by root finding."""

    def rate(errors, runs):
        return brentq(lambda p: binom.cdf(errors, runs, p) - 0.0005, 1e-12, 1 - 1e-12, xtol=1e-15)

    alpha, beta = rate(alarms, 1000), rate(misses, 1000)
    expected = max(
        0.0,
        math.log(max(1 - 1e-5 - beta, 1e-300) / alpha),
        math.log(max(1 - 1e-5 - alpha, 1e-300) / beta),
    )
    assert epsilon_lower(alarms, 1000, misses, 1000, 1e-5) == pytest.approx(expected, rel=1e-6)


def test_a_test_that_says_always_or_never_proves_nothing():
    assert epsilon_lower(0, 500, 500, 500, 1e-5) == 0 == epsilon_lower(500, 500, 0, 500, 1e-5)


def attack(mu, rng):
    """Held-out runs and runs of a Gaussian mechanism, and of its neighbour."""
    return ((rng.standard_normal(size) + mu, rng.standard_normal(size)) for size in (4_000, 20_000))


@pytest.mark.parametrize("gaussian_dp", [False, True])
@pytest.mark.parametrize("mu", [0.0, 0.25, 1.0, 2.0])
def test_a_gaussian_mechanism_is_never_refuted(mu, gaussian_dp):
    """Under fresh seeds: 160 tests at a level of 1e-8 each."""
    rng = np.random.default_rng()
    certified = epsilon_of(mu, 1e-5) if mu else 0.0
    bounds = [distinguished(*attack(mu, rng), 1e-5, 1 - 1e-8, gaussian_dp) for _ in range(20)]
    assert max(bounds) <= certified


@pytest.mark.parametrize("mu", [0.5, 1.0, 3.0])
def test_knowing_that_it_is_gaussian_dp_the_bound_is_near(mu):
    """20,000 runs a side bound mu to about 0.1; errors alone give much less at a small delta."""
    runs = list(attack(mu, np.random.default_rng()))
    near = distinguished(*runs, 1e-5, gaussian_dp=True)
    assert near > epsilon_of(mu - 0.2, 1e-5)
    assert near > distinguished(*runs, 1e-5)


def test_a_bound_on_mu_by_hand():
    """30 % of false alarms and 40 % of misses, to within their Clopper-Pearson bounds."""
    absent, present = np.r_[np.ones(300), np.zeros(700)], np.r_[np.ones(600), np.zeros(400)]  # the middle: 0.45
    alpha, beta = (betadist.ppf(0.9995, errors + 1, 1000 - errors) for errors in (300, 400))
    expected = epsilon_of(norm.ppf(1 - alpha) - norm.ppf(beta), 1e-5)
    runs = present, absent
    assert distinguished(runs, runs, 1e-5, gaussian_dp=True) == pytest.approx(expected, rel=1e-9)


def test_a_quarter_of_the_noise_is_found():
    assert distinguished(*attack(4.0, np.random.default_rng()), 1e-5) > epsilon_of(1.0, 1e-5)


def test_the_threshold_is_fixed_on_other_runs():
    """Chosen on the runs that it is judged by, the luckiest of many would refute mechanisms that are fine."""
    rng = np.random.default_rng(0)
    same = rng.standard_normal(300), rng.standard_normal(300)
    apart = np.ones(300), np.zeros(300)
    assert distinguished(apart, same, 1e-5) < 1 < 3 < distinguished(apart, apart, 1e-5)


@pytest.mark.parametrize("runs", [1, 10, 100, 200, 1_000])
def test_the_threshold_between_two_clouds_is_among_those_tried(runs):
    rng = np.random.default_rng(0)
    apart = (5 + rng.random(runs), rng.random(runs))
    more = (np.full(1_000, 4.0), np.full(1_000, 2.0))  # nearer to each other than any run that fixes the threshold
    assert distinguished(apart, more, 1e-5) == epsilon_lower(0, 1_000, 0, 1_000, 1e-5)


def test_a_claim_about_one_record_more_is_refuted_by_replacing_one_only_above_twice_its_epsilon():
    """And only by what the cell itself publishes."""

    def entries(*bounds):
        return [{"statistic": f"{start}a point", "epsilon_lower": bound} for start, bound in bounds]

    assert not refuted(entries(("", 5.99)), 3) and refuted(entries(("", 5.0), ("", 6.01)), 3)
    assert not refuted(entries(("", 5.0), (ELSEWHERE, 9.0)), 3) and not refuted([], 3)
    told = verdict(entries(("", 9.478), (ELSEWHERE, 9.9)), "3")
    assert told.startswith("refuted: replacing one has epsilon at least 9.47, and 3 is claimed for adding or removing")
    told = verdict(entries(("", 7.999)), "8")
    assert told.startswith("not refuted by these attacks: replacing one has epsilon at least 7.99")
    assert verdict([], "inf") == "Nothing is claimed."


def test_no_runs_no_bound():
    with pytest.raises(ValueError, match="needs runs"):
        distinguished((np.ones(3), np.ones(0)), (np.ones(3), np.ones(3)), 1e-5)
