import numpy as np
import pytest
from scipy.stats import t

from dpstudy.tables.intervals import joined, over_draws


def test_both_errors_are_in_it_and_their_squares_add():
    values = [70.0, 71.0, 74.0]
    mean, error = np.mean(values), t.ppf(0.975, 2) * np.std(values, ddof=1) / 3**0.5
    low, high = joined(values, (mean - 3, mean + 4), "top1")
    assert mean - low == pytest.approx((error**2 + 9) ** 0.5) and high - mean == pytest.approx((error**2 + 16) ** 0.5)


def test_of_one_seed_the_records_alone_are_known_and_of_no_records_nothing_is():
    assert joined([0.7], (0.6, 0.75), "auc") == pytest.approx((0.6, 0.75))
    assert joined([0.7, 0.8], None, "auc") is None


def test_ends_stay_in_the_range_of_the_metric_and_around_the_mean():
    assert joined([0.9, 0.99], (0.9, 0.99), "auc")[1] == 1.0
    assert joined([5.0, 25.0], (10.0, 20.0), "top1")[0] == 0.0
    assert joined([0.5], (0.52, 0.6), "auc")[0] == 0.5  # a bootstrap that lies above its own value


@pytest.mark.parametrize(("training", "testing"), [(2.0, 0.1), (0.1, 2.0), (1.0, 1.0)])
def test_it_covers_the_truth_as_often_as_it_says(training, testing):
    rng, hits, runs, seeds = np.random.default_rng(), 0, 2000, 5
    for _ in range(runs):
        records = testing * rng.standard_normal()  # one test split scores every seed
        values = 50 + records + training * rng.standard_normal(seeds)
        low, high = joined(values, (values.mean() - 1.96 * testing, values.mean() + 1.96 * testing), "top1")
        hits += low <= 50 <= high
    assert 0.93 < hits / runs < 0.985  # over-covers a little where both count: t is wider than a normal of its size


def test_a_mean_over_splits_varies_by_what_they_share():
    rng = np.random.default_rng(0)
    values = 70 + rng.standard_normal(20)
    low, high = over_draws([[value] for value in values], 3 / 7, "top1")
    half = t.ppf(0.975, 19) * np.std(values, ddof=1) * (1 / 20 + 1.5 * 3 / 7) ** 0.5
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half))
    assert over_draws([[70.0, 71.0]], 3 / 7, "top1") is None
    assert over_draws([[0.99], [0.8]], 3 / 7, "auc")[1] == 1.0


def test_seeds_of_a_split_do_not_shorten_it():
    """Their mean has less noise, but what splits share is no less."""
    rng = np.random.default_rng(1)
    noise = 3 * rng.standard_normal((400, 5))
    many, one = (over_draws(values + 50, 0.5, "top1") for values in (noise, noise[:, :1]))
    assert many[1] - many[0] == pytest.approx(one[1] - one[0], rel=0.1)
