"""Accountants where delta is small: each knows what rounding takes from it, and the smallest valid bound certifies."""

import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpstudy.core.errors import StudyError
from dpstudy.privacy import calibration, gaussian
from dpstudy.privacy.accountants import COUPLED, PLD, RDP, UNSAMPLED
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.adjacency import replacing_epsilon
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.calibration import affordable, calibrate
from dpstudy.privacy.certificate import recertify
from dpstudy.privacy.events import EXPONENTIAL, TRUNCATED, Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.loss_distributions import pld_epsilon, pld_floor
from dpstudy.privacy.renyi import (
    RDP_ORDERS,
    converted,
    finest_rdp_epsilon,
    rdp_epsilon,
    rough_epsilon,
    sampled_curve,
)


def poisson(sigma, rate, count, **more):
    return Event("gradient", "gaussian", sigma, 1.0, count, "poisson", rate, **more)


def tilted_log_delta(epsilon, sigma, rate, count, step=1e-3):
    """ln delta of `count` Poisson-sampled Gaussians, removing a unit: losses on a grid, tilted by exp(t loss) so that
    their mean is epsilon, and convolved by FFT; rounding is then relative to delta, however small."""
    x = np.linspace(-40 * sigma, 1 + 40 * sigma, 400_001)
    log_ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * x - 1) / (2 * sigma**2))
    log_mass = log_ratio - x**2 / (2 * sigma**2)
    log_mass -= np.logaddexp.reduce(log_mass)
    low, high = 0.0, 2000.0
    for _ in range(60):
        tilt = (low + high) / 2
        weights = np.exp(log_mass + tilt * log_ratio - np.logaddexp.reduce(log_mass + tilt * log_ratio))
        low, high = (tilt, high) if count * (weights * log_ratio).sum() < epsilon else (low, tilt)
    size = 2**19
    mass = np.bincount(np.rint(log_ratio / step).astype(int) % size, weights=weights, minlength=size)
    total = np.fft.irfft(np.fft.rfft(mass) ** count, size).clip(0)
    losses = np.fft.fftfreq(size, 1 / size) * step
    over = losses > epsilon
    log_moment = count * np.logaddexp.reduce(log_mass + tilt * log_ratio)
    share = (total[over] * np.exp(-tilt * (losses[over] - epsilon)) * -np.expm1(epsilon - losses[over])).sum()
    return log_moment - tilt * epsilon + math.log(share)


@pytest.mark.parametrize(
    ("sigma", "rate", "count", "delta"),
    [(1.1, 0.1, 10, 1e-16), (1.0, 0.01, 1000, 1e-9), (2.0, 0.5, 30, 1e-30), (3.0, 0.02, 2000, 1e-100)],
)
def test_a_certified_epsilon_is_no_less_than_a_slow_accountant_finds_and_not_much_more(sigma, rate, count, delta):
    epsilon = certify([poisson(sigma, rate, count)], delta).epsilon
    assert tilted_log_delta(epsilon, sigma, rate, count) <= math.log(delta)
    assert tilted_log_delta(0.8 * epsilon, sigma, rate, count) > math.log(delta)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    log_delta=st.floats(-300, -12),
    log_rate=st.floats(-5, -0.01),
    log_count=st.floats(0, 4),
    log_noise=st.floats(-0.4, 6),
    fixed=st.booleans(),
)
def test_the_smallest_valid_bound_certifies_and_is_never_zero_or_infinite(
    log_delta, log_rate, log_count, log_noise, fixed
):
    delta, sigma = 10**log_delta, math.exp(log_noise)
    events = [poisson(sigma, 10**log_rate, round(10**log_count))]
    if fixed:
        events.append(Event("normalisation", "gaussian", 2 * sigma, 1.0, 2))
    found = certify(events, delta, complete=True)
    bounds = {
        PLD: pld_epsilon(events, delta),
        RDP: finest_rdp_epsilon(events, delta),
        UNSAMPLED: gaussian.epsilon_of(gaussian.composed_mu(events), delta),
    }
    assert found.epsilon == min(bounds.values()) == bounds[found.accountant]
    assert 0 < found.epsilon < math.inf
    assert found.epsilon_by["exact"] is None
    assert (found.epsilon_by["pld"] is None) == (delta <= pld_floor(events)) == math.isinf(bounds[PLD])


def test_where_no_accountant_needs_help_only_one_is_asked_and_it_is_the_smallest():
    events = [poisson(1.5, 0.05, 200)]
    quick, complete = certify(events, 1e-6), certify(events, 1e-6, complete=True)
    assert quick.accountant == complete.accountant == PLD and quick.epsilon == complete.epsilon
    assert quick.epsilon_by["rdp"] is None and complete.epsilon_by["rdp"] > quick.epsilon


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is no longer than double here")
@pytest.mark.parametrize(
    ("sigma", "rate", "count", "size"), [(1.0, 0.1, 10, 8), (1.0, 0.01, 1000, 2), (2.0, 0.01, 20_000, 3)]
)
def test_rounding_takes_less_from_a_delta_than_the_floor(sigma, rate, count, size):
    """dp-accounting's convolution in double and in long double precision."""
    from dp_accounting.pld import common, privacy_loss_distribution
    from scipy import fft

    step = 1e-4 * size
    one = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, value_discretization_interval=step, sampling_prob=rate
    )
    for pmf in (one._pmf_remove.to_dense_pmf(), one._pmf_add.to_dense_pmf()):
        low, high = common.compute_self_convolve_bounds(pmf._probs, count, 1e-15)
        length = fft.next_fast_len(max(high - low + 1, pmf.size))
        double, exact = (
            np.roll(np.real(fft.ifft(fft.fft(pmf._probs.astype(kind), length) ** count)), -low)[: high - low + 1]
            for kind in (np.float64, np.longdouble)
        )
        losses = (np.arange(len(double)) + low + pmf._lower_loss * count) * step
        for epsilon in (0.3 * size, size, 1.5 * size):
            weights = np.where(losses > epsilon, -np.expm1(np.minimum(0, epsilon - losses)), 0)
            off = abs(float(weights @ (double - exact)))
            assert off < 0.1 * pld_floor([poisson(sigma, rate, count)])


@pytest.mark.parametrize(("sigma", "rate"), [(0.8, 0.3), (30.0, 1e-4), (2.8e7, 0.1), (1e5, 1e-5)])
@pytest.mark.parametrize("order", [2, 16, 127])
def test_no_divergence_is_below_the_exact_one(sigma, rate, order):
    """Of dp-accounting's own some are 0 or negative where noise is large, of which its conversion makes epsilon 0."""
    with mpmath.workdps(60):
        q, s = mpmath.mpf(rate), mpmath.mpf(sigma)
        moments = [mpmath.binomial(order, k) * q**k * (1 - q) ** (order - k) * mpmath.exp(k * (k - 1) / (2 * s * s))
                   for k in range(order + 1)]  # fmt: skip
        exact = 1000 * mpmath.log(mpmath.fsum(moments)) / (order - 1)
    (found,) = sampled_curve((poisson(sigma, rate, 1000),), (order,))
    assert exact <= found <= float(exact) * (1 + 1e-9) + 1e-10


def test_noise_beyond_rounding_is_not_taken_for_no_privacy_loss():
    events = [poisson(2.8e7, 0.1, 10)]  # delta at epsilon 0 is about 4.5e-9
    for delta in (1e-16, 1e-12):
        assert min(rdp_epsilon(events, delta), rough_epsilon(events, delta), certify(events, delta).epsilon) > 0
    assert certify(events, 1e-8).epsilon == 0 == rough_epsilon(events, 1e-3)


DELTAS = (1e-10, 1e-13, 1e-14, 1e-15, 1e-16, 1e-30, 1e-100, 1e-300)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "rate", "count"), [("8", 0.1, 10), ("0.5", 0.3, 3), ("50", 1e-3, 100)])
def test_the_noise_of_a_target_grows_smoothly_as_delta_falls(epsilon, rate, count):
    def events_at(scale):
        return (poisson(scale, rate, count),)

    noise = []
    for delta in DELTAS[1::2]:
        noise.append(calibrate(events_at, Budget(epsilon, delta)))
        spent = certify(events_at(noise[-1]), delta).epsilon
        assert 0.98 * float(epsilon) <= spent <= float(epsilon)
        assert noise[-1] <= math.sqrt(count) / gaussian.mu_of(float(epsilon), delta) * (1 + 1e-4), "as without sampling"
    assert noise == sorted(noise) and noise[1] < 1.2 * noise[0]


def test_affordable_steps_at_a_small_delta():
    def after(steps):
        return (poisson(2.0, 0.1, steps),)

    steps = affordable(after, Budget("8", 1e-16))
    assert certify(after(steps), 1e-16).epsilon <= 8 < certify(after(steps + 1), 1e-16).epsilon


def test_a_calibration_that_ends_far_below_its_target_is_an_error(monkeypatch):
    def jump(events, delta):
        return SimpleNamespace(epsilon=5.0 if events[0].noise_multiplier < 40 else 1e-9)

    monkeypatch.setattr(calibration, "certify", jump)
    with pytest.raises(
        StudyError, match="epsilon 1 at delta 1e-5 cannot be reached: no accountant .*nearest below is "
    ):
        calibrate(lambda scale: (poisson(scale, 0.1, 10),), Budget("1", 1e-5))


def test_a_target_that_no_accountant_reaches_is_not_put_down_to_fixed_noise(monkeypatch):
    monkeypatch.setattr(calibration, "_LARGEST_LOG_SCALE", 6.0)
    monkeypatch.setattr(calibration, "certify", lambda events, delta: SimpleNamespace(epsilon=5.0))
    with pytest.raises(StudyError, match="no accountant has a bound near it .*none is certified.*larger delta"):
        calibrate(lambda scale: (poisson(scale, 0.1, 10),), Budget("1", 1e-5))


TRAIN = poisson(2.0, 0.05, 50, part="train")
BOTH = f"{RDP}; exact Gaussian DP"
CUT = Event("gradient", "gaussian", 1.1, 1.0, 10, TRUNCATED, 0.1, largest=300, units=1000)
SMALL = [
    ((poisson(1.1, 0.1, 10),), 1e-14, RDP),
    ((poisson(1.1, 0.1, 10),), 1e-16, RDP),
    ((poisson(1.1, 0.1, 10),), 1e-300, RDP),
    ((poisson(300.0, 0.99, 10),), 1e-20, UNSAMPLED),
    ((poisson(1.5, 0.01, 300), Event("normalisation", "gaussian", 8.0, 1.0, 2)), 1e-40, RDP),
    ((poisson(1.0, 0.01, 1000),), 1e-10, PLD),
    ((poisson(1.0, 0.01, 1000),), 7.2e-12, RDP),  # just above the floor of PLD
    ((Event("sum", "gaussian", 3.0, 1.0, 5),), 1e-16, "exact Gaussian DP"),
    ((poisson(2.3, 0.0114, 98, part="train"), Event("f", "gaussian", 53.6, 1.0, 30, part="validation")), 5.9e-13, BOTH),
    ((TRAIN, Event("score", "gaussian", 9.0, 1.0, part="validation")), 1e-15, BOTH),
    ((poisson(1.5, 0.02, 200, trials=10.0),), 1e-20, RDP),
    ((Event("sum", "gaussian", 6.0, 1.0), Event("choice", EXPONENTIAL, 2.0, 1.0)), 1e-40, "exact pure and Gaussian DP"),
    ((CUT,), 1e-16, RDP + COUPLED),
]  # fmt: skip


@pytest.mark.parametrize(("events", "delta", "accountant"), SMALL)
def test_a_ledger_names_who_certified_it_and_stands_and_falls_as_it_should(events, delta, accountant):
    ledger = build_ledger(events, Budget("2", delta), n=1000, unit="record", noise="secure")
    assert ledger["accountant"] == accountant and ledger["guarantee"] == "proved"
    assert recertify(ledger)["faults"] == []
    for factor in (0.9, 1.1):
        assert recertify(ledger | {"epsilon": factor * ledger["epsilon"]})["faults"]


def test_replacing_a_record_has_a_bound_where_distributions_have_none():
    events = [poisson(1.1, 0.1, 10)]
    once, bound = certify(events, 1e-14).epsilon, replacing_epsilon(events, 1e-14)
    assert 2 * once < bound < 2.5 * once
    # What it says is what two steps give: at bound/2 there is a delta' with (1 + e^(bound/2)) delta' <= delta.
    smaller = 1e-14 / (1 + math.exp(bound / 2))
    assert certify(events, smaller).epsilon <= bound / 2 * 1.03  # the search stands on a coarser grid


def test_between_large_orders_the_best_one_is_found():
    events = (poisson(3.1014, 2.48e-4, 5667),)
    orders = tuple(range(127, 161))
    every = converted(orders, sampled_curve(events, orders), 1e-30)
    assert finest_rdp_epsilon(events, 1e-30) == every < 0.85 * rdp_epsilon(events, 1e-30)


def test_a_target_is_met_closely_where_divergences_rise_steeply():
    scale = calibrate(lambda scale: (poisson(scale, 2.48e-4, 5667),), Budget("0.5", 1e-30))
    assert 0.98 * 0.5 < certify([poisson(scale, 2.48e-4, 5667)], 1e-30).epsilon <= 0.5


def test_orders_of_a_quick_bound_hold_no_less_than_all_orders():
    events = [poisson(1.1, 0.1, 10)]
    assert rdp_epsilon(events, 1e-16) <= rough_epsilon(events, 1e-16) * (1 + 1e-9) and len(RDP_ORDERS) > 100


@pytest.mark.parametrize("delta", [9e-301, 5e-324])
def test_a_delta_beyond_arithmetic_is_refused(delta):
    with pytest.raises(StudyError, match=f"delta {delta!r}: must be at least 1e-300"):
        calibrate(lambda scale: (Event("sum", "gaussian", scale, 1.0),), Budget("1", delta))
