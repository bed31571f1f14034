"""The accountants against each other, closed forms, and a small accountant written here."""

import math

import numpy as np
import pytest

from dpstudy.privacy.accountants import zcdp_epsilon
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.events import Event
from dpstudy.privacy.loss_distributions import pld_epsilon
from dpstudy.privacy.renyi import rdp_epsilon, rough_epsilon


def full(sigma, count=1):
    return Event("release", "gaussian", sigma, 1.0, count)


def poisson(sigma, rate, count):
    return Event("release", "gaussian", sigma, 1.0, count, "poisson", rate)


def slow_delta(epsilon, sigma, rate, count, step=2e-4, reach=14.0):
    """delta of `count` Poisson-sampled Gaussians: loss distributions rounded to a grid, convolved by FFT."""
    x = np.linspace(-reach * sigma, 1 + reach * sigma, 400_001)
    absent = np.exp(-(x**2) / (2 * sigma**2))
    present = (1 - rate) * absent + rate * np.exp(-((x - 1) ** 2) / (2 * sigma**2))
    worst = 0.0
    for upper, lower in ((present, absent), (absent, present)):  # removing and adding
        loss = np.log(upper) - np.log(lower)
        size = 2 ** math.ceil(math.log2((2 * 30.0) / step))
        place = np.rint(loss / step).astype(int) % size
        mass = np.bincount(place, weights=upper / upper.sum(), minlength=size)
        total = np.fft.irfft(np.fft.rfft(mass) ** count, size).clip(0)
        losses = np.arange(size) * step
        losses[size // 2 :] -= size * step
        over = losses > epsilon
        worst = max(worst, float((total[over] * -np.expm1(epsilon - losses[over])).sum()))
    return worst


@pytest.mark.parametrize(
    ("sigma", "count", "delta"), [(0.8, 1, 1e-5), (3.0, 1, 1e-6), (20.0, 60, 1e-5), (50.0, 1, 1e-4)]
)
def test_full_batch_bounds_are_ordered(sigma, count, delta):
    certificate = certify([full(sigma, count)], delta, complete=True)
    by = certificate.epsilon_by
    assert certificate.accountant == "exact Gaussian DP"
    assert certificate.epsilon == by["exact"]
    assert by["pld"] == pytest.approx(by["exact"], rel=1e-4)
    assert by["exact"] <= by["pld"] * (1 + 1e-9)
    assert by["pld"] <= by["rdp"] <= by["zcdp"] * (1 + 1e-9)
    assert by["exact"] >= 0


@pytest.mark.parametrize(("sigma", "rate", "count", "delta"), [(0.7, 0.3, 1, 1e-5), (1.5, 0.05, 40, 1e-4)])
def test_poisson_pld_agrees_with_a_slow_accountant_and_stays_below_rdp(sigma, rate, count, delta):
    certificate = certify([poisson(sigma, rate, count)], delta, complete=True)
    by = certificate.epsilon_by
    assert by["exact"] is None and by["zcdp"] is None
    assert certificate.epsilon == by["pld"]
    assert slow_delta(by["pld"] * 1.002, sigma, rate, count) <= delta
    assert slow_delta(by["pld"] * 0.998, sigma, rate, count) >= delta
    assert by["pld"] <= by["rdp"] <= rough_epsilon([poisson(sigma, rate, count)], delta) * (1 + 1e-9)


def test_subsampling_amplifies_and_steps_cost():
    few = rough_epsilon([poisson(1.0, 0.01, 10)], 1e-5)
    assert few < rough_epsilon([poisson(1.0, 0.01, 1000)], 1e-5)
    assert few < rough_epsilon([poisson(1.0, 0.1, 10)], 1e-5)
    assert few < rough_epsilon([poisson(0.7, 0.01, 10)], 1e-5)


def test_zcdp_by_hand():
    assert zcdp_epsilon([full(2.0, 4)], math.exp(-8)) == pytest.approx(0.5 + 2 * math.sqrt(0.5 * 8))
    with pytest.raises(ValueError, match="subsampling"):
        zcdp_epsilon([poisson(1.0, 0.1, 1)], 1e-5)


@pytest.mark.parametrize("event", [full(0.0), poisson(0.0, 0.1, 5)])
def test_no_noise_gives_an_infinite_epsilon(event):
    certificate = certify([full(3.0), event], 1e-5, complete=True)
    assert math.isinf(certificate.epsilon)


def test_epsilon_is_never_negative_even_where_delta_covers_everything():
    assert certify([full(1e6)], 1e-3).epsilon == 0
    assert pld_epsilon([poisson(1e4, 0.1, 10)], 1e-3) == 0
    assert rdp_epsilon([poisson(1e4, 0.1, 10)], 1e-3) >= 0


def test_shuffled_batches_are_certified_as_zero_out_without_amplification():
    event = Event("gradient", "gaussian", 2.0, 1.0, 100, "shuffle", 0.05, epochs=5)
    certificate = certify([event], 1e-5, complete=True)
    assert certificate.adjacency == "zero-out"
    assert certificate.epsilon == pytest.approx(certify([full(2.0, 5)], 1e-5).epsilon)
    assert certificate.epsilon > rdp_epsilon([poisson(2.0, 0.05, 100)], 1e-5)
    with pytest.raises(ValueError, match="adjacency"):
        certify([event, poisson(1.0, 0.1, 1)], 1e-5)
