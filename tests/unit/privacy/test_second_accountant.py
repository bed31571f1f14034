"""The second accountant's bracket holds the exact epsilon, is narrow, and its lattices are on the right sides."""

import math

import mpmath
import numpy as np
import pytest

from dpstudy.privacy import gaussian, second_accountant
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.distributions_certificate import ROUNDING
from dpstudy.privacy.events import Event
from dpstudy.privacy.second_accountant import SMALLEST_DELTA, _Direction, bracket
from tests.unit.privacy.test_accounting_floors import tilted_log_delta


@pytest.mark.parametrize("mu", [0.0025, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-7, 1e-60])
def test_a_whole_gaussian_is_between(mu, delta):
    exact = gaussian.epsilon_of(mu, delta)
    low, high = bracket([(math.sqrt(3) / mu, 1.0, 2), (math.sqrt(3) / mu, 1.0, 1)], delta)
    assert low <= exact * (1 + 1e-9) and exact <= high * (1 + 1e-9) and high - low <= 3e-4 * exact


def one_sampled(epsilon, noise, rate):
    """delta of one sampled Gaussian, the larger of both directions, by the closed form of its threshold."""
    with mpmath.workdps(40):
        q, s, factor = mpmath.mpf(rate), mpmath.mpf(noise), mpmath.exp(epsilon)

        def above(x, mean):
            return mpmath.ncdf((mean - x) / s)

        add = mpmath.mpf(0)
        x = s**2 * mpmath.log((factor - 1 + q) / q) + 0.5
        remove = (1 - q) * above(x, 0) + q * above(x, 1) - factor * above(x, 0)
        if 1 / factor > 1 - q:
            x = s**2 * mpmath.log((1 / factor - 1 + q) / q) + 0.5
            add = 1 - above(x, 0) - factor * (1 - (1 - q) * above(x, 0) - q * above(x, 1))
        return float(max(remove, add))


@pytest.mark.parametrize(
    ("noise", "rate", "epsilon"),
    [(0.8, 0.3, 3.0), (0.4, 1e-4, 5.0), (2.0, 0.99, 0.5), (10.0, 0.01, 1e-3), (0.35, 1e-3, 8.0), (50.0, 0.5, 0.02)],
)
def test_one_release_is_between_by_the_closed_form_of_many_digits(noise, rate, epsilon):
    delta = one_sampled(epsilon, noise, rate)
    low, high = bracket([(noise, rate, 1)], delta)
    assert low <= epsilon <= high and high - low <= 5e-4 * epsilon


def convolved_delta(epsilon, releases, points=1601):
    """delta of two or three releases, removing a unit, by summing over a product of quadratures (midpoint rule)."""
    total, probabilities = np.zeros(1), np.ones(1)
    for noise, rate in releases[:-1]:
        x = np.linspace(-9 * noise, 1 + 9 * noise, points)
        density = (1 - rate) * np.exp(-(x**2) / (2 * noise**2)) + rate * np.exp(-((x - 1) ** 2) / (2 * noise**2))
        weights = density / density.sum()
        losses = np.log1p(rate * np.expm1((2 * x - 1) / (2 * noise**2)))
        total = (total[:, None] + losses).ravel()
        probabilities = (probabilities[:, None] * weights).ravel()
    noise, rate = releases[-1]  # the last one in closed form
    from scipy.special import ndtr

    over = np.expm1(epsilon - total) + rate
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(over > 0, noise**2 * np.log(over / rate) + 0.5, -np.inf)
    none, one = ndtr(-x / noise), ndtr((1 - x) / noise)
    return float(probabilities @ ((1 - rate) * none + rate * one - np.exp(epsilon - total) * none))


@pytest.mark.parametrize(
    ("releases", "epsilon"),
    [([(0.9, 0.2), (0.9, 0.2)], 3.0), ([(0.7, 0.01), (3.0, 0.5)], 2.0), ([(2.0, 0.3), (0.8, 0.05), (5.0, 0.9)], 1.5)],
)
def test_unlike_releases_are_between_by_direct_integration(releases, epsilon):
    delta = convolved_delta(epsilon, releases, 1601 if len(releases) == 2 else 1201)
    counts = {(noise, rate): sum(one == (noise, rate) for one in releases) for noise, rate in releases}
    low, high = _Direction(counts, 1, delta).bracket(2e-4)
    assert low * (1 - 1e-6) <= epsilon <= high * (1 + 1e-6) and high - low <= 3e-4 * epsilon


def test_both_ends_are_right_where_the_lattice_is_coarse_for_one_of_unlike_releases():
    """The lower end was above the upper one: a mean outside of two lattice points was given to them all the same."""
    releases = [(4.09806, 0.00108507, 9), (8.19612, 0.35684, 5), (20.4903, 1.0, 2)]
    low, high = bracket(releases, 1e-5)
    finer = bracket(releases, 1e-5, 1e-6)
    assert low <= finer[0] <= finer[1] <= high and finer[1] - finer[0] <= 1e-6 * high


SWEEP = [  # of `python -m benchmarks accountant`, its corners
    (1.0, 10_000, 2000.0, 1e-6), (1e-4, 10_000, 0.45, 1e-5), (1e-4, 10_000, 5.0, 1e-7), (1e-3, 7, 0.6, 1e-7),
    (0.3, 10_000, 3000.0, 1e-5), (0.02, 5000, 1.1, 1e-5), (0.000939, 11, 1.955, 1e-5), (0.00288, 62, 1.355, 1e-7),
]  # fmt: skip


@pytest.mark.parametrize(("rate", "count", "noise", "delta"), SWEEP)
def test_training_and_the_bracket_agree_to_a_thousandth(rate, count, noise, delta):
    event = Event("g", "gaussian", noise, 1.0, count, "poisson" if rate < 1 else "none", rate)
    low, high = bracket([(noise, rate, count)], delta)
    stated = certify([event], delta).epsilon
    assert low <= stated * (1 + 1e-9) and stated <= 1.001 * high and high - low <= 1e-3 * high


@pytest.mark.parametrize(
    ("noise", "rate", "count", "delta"), [(1.1, 0.1, 10, 1e-16), (2.0, 0.5, 30, 1e-30), (3.0, 0.02, 2000, 1e-100)]
)
def test_small_deltas_are_those_of_a_slow_accountant(noise, rate, count, delta):
    low, high = bracket([(noise, rate, count)], delta)
    assert high - low <= 1e-3 * high
    assert tilted_log_delta(1.002 * high, noise, rate, count) < math.log(delta)
    assert tilted_log_delta(0.998 * low, noise, rate, count) > math.log(delta)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("noise", "rate"), [(0.7, 0.01), (3.0, 0.5), (1.5, 1.0), (0.5, 1e-4), (4.1, 1e-3)])
@pytest.mark.parametrize("size", [2, 5, 11, 40, 300, 5000])
def test_lattices_are_on_their_side_of_the_hockey_stick(sign, noise, rate, size):
    """One release: at every epsilon, between lattice points too, delta of either lattice and the exact one."""
    direction = _Direction({(noise, rate): 1}, sign, 1e-6)
    (release,) = direction.kinds
    h = (direction.high - direction.low) / size
    (first, above, infinite), (_, below, _) = release.lattices(h)
    losses, below = first + h * np.arange(len(above)), np.append(below, 0.0)
    for epsilon in np.linspace(losses[0] - h, losses[-1] + h, 57):
        factors = np.maximum(0, -np.expm1(np.minimum(0, epsilon - losses)))
        without, with_ = (masses[1] for masses in release._masses(np.array([epsilon])))
        mixed = (1 - rate) * without + rate * with_
        p, q = (mixed, without) if sign > 0 else (without, mixed)
        exact = max(0.0, p - math.exp(epsilon) * q)
        assert below @ factors - 1e-14 <= exact <= above @ factors + infinite + 1e-14, epsilon
    assert above.sum() + infinite == pytest.approx(1, abs=1e-12) and below.sum() <= 1 + 1e-12


def test_a_delta_or_a_release_that_is_out_of_range_is_refused():
    for releases, delta in (([(1.0, 1.0, 1)], SMALLEST_DELTA / 2), ([(1.0, 1.0, 1)], 1.0), ([(0.0, 1.0, 1)], 1e-5)):
        with pytest.raises(ValueError, match=r"must be in|no bound"):
            bracket(releases, delta)
    for release in ((1.0, 0.0, 1), (1.0, 1.5, 1), (1.0, 0.5, 0), (math.inf, 0.5, 1)):
        with pytest.raises(ValueError, match="no bound"):
            bracket([release], 1e-5)


def test_rounding_is_added_above_and_taken_off_below(monkeypatch):
    from dpstudy.privacy import second_accountant

    low, high = bracket([(1.0, 0.01, 1000)], 1e-6)
    monkeypatch.setattr(second_accountant, "_ROUNDING", 1e-5)
    wide = bracket([(1.0, 0.01, 1000)], 1e-6)
    assert wide[0] < low * (1 - 1e-4) and wide[1] > high * (1 + 1e-4)


@pytest.mark.slow
def test_what_rounding_can_do_is_added_above_and_taken_off_below(monkeypatch):
    """Each release may round as in privacy/loss_distributions.py; more of it moves the ends apart."""
    releases = [(1.2, 0.05, 30)]
    low, high = bracket(releases, 1e-5)
    assert second_accountant._ROUNDING >= ROUNDING
    monkeypatch.setattr(second_accountant, "_ROUNDING", 1e-4)  # of 31 sums, relative to delta
    lower, higher = bracket(releases, 1e-5)
    slope = 31e-4 / math.log(bracketed_delta_ratio(releases))
    assert lower < low - 0.5 * slope and higher > high + 0.5 * slope


def bracketed_delta_ratio(releases):
    """By how much delta falls for each epsilon more, near 1e-5."""
    (_, one), (_, ten) = bracket(releases, 1e-5), bracket(releases, 1e-6)
    return 10 ** (1 / (ten - one))
