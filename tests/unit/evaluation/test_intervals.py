"""What an interval over test records is: it holds its value, reaches beyond 0 and 1 nowhere, and has a length there."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from dpstudy.evaluation import weighted
from dpstudy.evaluation.intervals import FEWEST, Part, area_part, interval, parts_of, share_part
from dpstudy.evaluation.metrics import metric_of, names

ON_TEST = [name for name in names() if not metric_of(name).on_training]


def areas(scores, member, persons, metric="auc", count=200):
    weights = np.concatenate([np.ones((1, len(member))), weighted.resamples(len(member), count, persons)])
    return area_part(metric_of(metric), metric_of(metric).area(scores, member, weights), member, persons)


def test_independent_records_of_a_share_have_wilsons():
    right = np.arange(50) < 43
    expected = binomtest(43, 50).proportion_ci(0.95, method="wilson")
    assert interval([share_part(right, np.arange(50))]) == pytest.approx([expected.low, expected.high], rel=1e-6)


def test_pictures_of_a_person_that_are_alike_say_as_much_as_one():
    right, persons = np.arange(40) < 30, np.arange(40)
    once, fivefold = share_part(right, persons), share_part(np.repeat(right, 5), np.repeat(persons, 5))
    (low, high), (wide_low, wide_high) = interval([once]), interval([fivefold])
    assert high - low <= wide_high - wide_low <= 1.1 * (high - low)
    as_records = interval([share_part(np.repeat(right, 5), np.arange(200))])
    assert wide_high - wide_low > 2 * (as_records[1] - as_records[0])


def test_the_model_of_an_area_is_its_variance_without_signal():
    """Of two samples of the same distribution it is (m + n + 1)/(12 m n)."""
    found = metric_of("auc").independent(0.5, 12, 30)
    assert 0.25 / found == pytest.approx(43 / (12 * 12 * 30), rel=0.01)


@pytest.mark.parametrize("name", ["auc", "average_precision"])
def test_an_area_of_one_has_an_interval_with_a_length(name):
    member = np.arange(60) < 10
    low, high = interval([areas(np.where(member, 5.0, -5.0), member, np.arange(60), name)])
    assert 0.6 < low < 0.97 and high == 1.0


@pytest.mark.parametrize("persons", [FEWEST - 1, FEWEST])
def test_it_is_withheld_below_so_many_persons_on_either_side(persons):
    rng = np.random.default_rng(0)
    member = np.arange(200) < 5 * persons
    for side in (member, ~member):
        part = areas(rng.standard_normal(200), side, np.arange(200) // 5)
        assert (interval([part]) is None) == (persons < FEWEST)
        assert (interval([replace(part, persons=50), part]) is None) == (persons < FEWEST)
    assert (interval([share_part(np.arange(200) % 2 == 0, np.arange(200) % persons)]) is None) == (persons < FEWEST)


def test_parts_that_go_together_leave_more_open_than_parts_that_do_not():
    rng = np.random.default_rng(0)
    samples = 0.7 + 0.05 * rng.standard_normal((2, 4000))

    def width(*own):
        low, high = interval([Part(0.7, each, 30, 84.0, 3.0, 32.0) for each in own])
        return high - low

    alone = width(samples[0])
    assert width(samples[0], samples[0]) == pytest.approx(alone, rel=0.02)
    assert width(samples[0], samples[1]) == pytest.approx(alone / math.sqrt(2), rel=0.05)


def test_samples_that_mostly_do_not_define_it_give_none():
    part = Part(0.7, np.where(np.arange(100) < 60, np.nan, 0.7), 30, 84.0, 3.0, 32.0)
    assert interval([part]) is None and interval([]) is None


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", ON_TEST)
def test_it_holds_the_value_of_every_metric(name, several):
    """Of random, of good and of perfect scores, with persons of several pictures."""
    rng, metric = np.random.default_rng(3), metric_of(name)
    labels = (rng.random((120, 8)) < 0.3).astype(int) if several else np.arange(120) % 8
    classes, truth = [str(label) for label in range(8)], labels if several else np.eye(8)[labels]
    if not metric.suits(labels, classes):
        pytest.skip("such labels leave nothing to measure")
    persons = rng.integers(0, 90, 120)
    weights = np.concatenate([np.ones((1, 120)), weighted.resamples(120, 60, persons)])
    for strength in (0.0, 1.0, 9.0):
        scores = strength * truth + rng.standard_normal(truth.shape)
        low, high = interval(parts_of(metric, scores, labels, classes, weights, persons))
        value = metric.value(scores, labels, classes) / (100 if metric.percent else 1)
        assert 0 <= low <= value + 1e-12 and value - 1e-12 <= high <= 1 and low < high
