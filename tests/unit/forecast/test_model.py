"""Forecasts: curves that follow the law are found again, and those of the library foretell a set they have not seen."""

import dataclasses
import math

import numpy as np
import pytest

from dpstudy.forecast.curves import CLASSES, ONE, SEVERAL, Point, read
from dpstudy.forecast.model import LEAST_GAIN, Forecast, Question, held_out, question_of, signal_of, tells
from dpstudy.forecast.skill import skill_of, value_of
from dpstudy.privacy.gaussian import mu_of

METHODS = ("least_squares", "feature_covariance", "kernel_mean")


def lawful(noise=0.0, sets=6):
    """Points of made-up sets whose factors have log odds of 3 log10(n mu / 100), and a number of the set's own."""
    random, found = np.random.default_rng(0), []
    for number in range(sets):
        off = noise * random.normal()
        for n in (100, 1000, 10_000):
            for epsilon in (1.0, 8.0):
                odds = 3 * math.log10(n * mu_of(epsilon, 1e-6) / 100) + off
                skill = skill_of(0.9, ONE, 2) / math.sqrt(1 + math.exp(-odds))
                told = ("made-up", 8, ONE, 2, 0.5, n, epsilon, 1e-6, "m", "auc", value_of(skill, ONE, 2), 0.5, 0.9, 1)
                found.append(Point(str(number), *told))
    return found


def asked(signal, n=1000, best=0.9):
    return Question("m", ONE, 2, 0.5, n, signal, best)


def test_a_law_is_found_again():
    forecast = Forecast("m", ONE, lawful())
    low, middle, high = forecast.share(asked(100.0))
    expected = (value_of(skill_of(0.9, ONE, 2) / math.sqrt(2), ONE, 2) - 0.5) / 0.4
    assert middle == pytest.approx(expected, abs=0.06) and low <= middle <= high and high - low < 0.2
    shares = [forecast.share(asked(signal))[1] for signal in (20, 60, 200, 600, 2000)]
    assert shares == sorted(shares) and shares[0] < 0.5 and shares[-1] > 0.95


def test_sets_that_differ_make_intervals_wide_and_an_unknown_gain_wider():
    narrow, wide = (Forecast("m", ONE, lawful(noise)).share(asked(100.0)) for noise in (0.1, 1.5))
    assert narrow[2] - narrow[0] < 0.2 < wide[2] - wide[0]
    known, unknown = (Forecast("m", ONE, lawful(0.1)).share(asked(100.0, best=best)) for best in (0.9, None))
    assert unknown[0] < known[0] and unknown[2] > known[2]


def test_few_sets_say_nothing_nor_do_models_that_gain_little():
    with pytest.raises(ValueError, match="m, one: curves of 2 data sets are too few"):
        Forecast("m", ONE, lawful(sets=2))
    dull = [dataclasses.replace(point, best=0.5 + 0.9 * LEAST_GAIN) for point in lawful()]
    assert not any(map(tells, dull))
    with pytest.raises(ValueError, match="curves of 0 data sets"):
        Forecast("m", ONE, dull)


def test_signal_grows_with_units_and_epsilon_and_falls_with_unused_room():
    assert signal_of(2000, 1.0, 1e-5) == pytest.approx(2 * signal_of(1000, 1.0, 1e-5))
    assert signal_of(1000, 2.0, 1e-5) > signal_of(1000, 1.0, 1e-5)
    assert signal_of(1000, 1.0, 1e-5, records=1.5, most=3) == pytest.approx(0.5 * signal_of(1000, 1.0, 1e-5))


def test_of_a_set_that_is_left_out_the_intervals_hold_and_are_narrow():
    """The goals that were set: at least 80 % of points within intervals of 90 %, a mean width of at most a quarter."""
    coverage, width = held_out(read())
    assert coverage >= 0.8 and width <= 0.25


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", [CLASSES, ONE, SEVERAL])
def test_more_records_a_larger_epsilon_and_what_is_less_rare_lose_less(method, task):
    forecast, classes = Forecast(method, task, read()), {CLASSES: 10, ONE: 2, SEVERAL: 8}[task]

    def share(n, epsilon, prevalence=0.1, m=classes):
        signal = signal_of(n, epsilon, 1e-6)
        return forecast.share(Question(method, task, m, prevalence, n, signal, 80.0 if task == CLASSES else 0.85))[1]

    for epsilon in (1.0, 4.0):
        found = [share(n, epsilon) for n in (100, 300, 1000, 3000, 10_000, 40_000)]
        assert found == sorted(found) and found[-1] > 0.8
    by_epsilon = [share(500, epsilon) for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]
    assert by_epsilon == sorted(by_epsilon) and by_epsilon[-1] > by_epsilon[0] + 0.1
    if task == CLASSES:
        assert share(1000, 1.0, m=10) > share(1000, 1.0, m=100)
    else:
        assert share(1000, 1.0, 0.5) >= share(1000, 1.0, 0.1) - 0.02


def test_beyond_what_was_measured_nothing_is_extrapolated():
    forecast = Forecast("least_squares", ONE, read())
    most, beyond = (forecast.share(Question("", ONE, 2, 0.3, 50_000, signal, 0.9)) for signal in (1e5, 1e9))
    assert most == pytest.approx(beyond, abs=0.02) and most[1] > 0.9


def test_a_point_asks_what_it_answers():
    point = dataclasses.replace(lawful()[0], method="x")
    assert question_of(point) == Question("x", ONE, 2, 0.5, 100, signal_of(100, 1.0, 1e-6), 0.9)
