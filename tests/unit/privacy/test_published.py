"""The papers' own conversions, by hand and against what is printed."""

import math

import pytest

from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.calibration import calibrate
from dpstudy.privacy.events import Event
from dpstudy.privacy.published import CONVERSIONS, de2022, mehta2023, tramer2021


def test_mehta2023_solved_by_hand():
    """rho + 2 sqrt(rho L) = epsilon has the root rho = (sqrt(L + epsilon) - sqrt(L))^2."""
    epsilon, delta, releases = 4.0, 8e-7, 3
    log = math.log(1 / delta)
    rho = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
    assert rho == pytest.approx(0.250, abs=1e-3)  # not the 0.154 that is printed
    scale = calibrate(
        lambda scale: (Event("release", "gaussian", scale, 1.0, releases),), Budget("4", delta, "mehta2023")
    )
    assert releases / (2 * scale**2) == pytest.approx(rho, rel=1e-3)
    events = (Event("release", "gaussian", scale, 1.0, releases),)
    assert mehta2023(events, delta) <= epsilon
    assert certify(events, delta).epsilon < 0.9 * epsilon


def test_tramer2021_old_renyi_conversion_of_a_full_batch_by_hand():
    """min over orders of a/(2 s^2) + ln(1/delta)/(a - 1); the continuous optimum is rho + 2 sqrt(rho L)."""
    sigma, delta = 2.0, 1e-5
    event = Event("release", "gaussian", sigma, 1.0)
    orders = [1 + x / 10 for x in range(1, 100)]
    by_hand = min(order / (2 * sigma**2) + math.log(1 / delta) / (order - 1) for order in orders)
    assert tramer2021([event], delta) == pytest.approx(by_hand, rel=1e-9)
    assert tramer2021([event], delta) == pytest.approx(mehta2023([event], delta), rel=1e-3)


def test_tramer2021_prints_3_where_about_2_4_is_certified():
    """MNIST on ScatterNet features: B = 4096 of 60,000, 40 epochs, two normalisation releases of sigma 8."""
    rate, steps, delta = 4096 / 60_000, round(40 * 60_000 / 4096), 1e-5
    fixed = Event("normalisation", "gaussian", 8.0, 1.0, 2)

    def events_at(scale):
        return (fixed, Event("gradient", "gaussian", scale, 1.0, steps, "poisson", rate))

    scale = calibrate(events_at, Budget("3", delta, "tramer2021"))
    events = events_at(scale)
    assert 3 * (1 - 2e-4) <= tramer2021(events, delta) <= 3
    certified = certify(events, delta).epsilon
    assert certified == pytest.approx(2.4, abs=0.1)
    assert certified < de2022(events, delta) < 3


def test_every_name_of_the_config_has_a_conversion():
    from dpstudy.schema.reading import schema

    assert {"certified", *CONVERSIONS} == set(schema("config")["properties"]["accounting"]["enum"])
