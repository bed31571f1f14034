"""Private normalisation against a loop over records."""

import numpy as np
import pytest

from dpstudy.methods.private_normalisation import Normalisation, channel_sums, events, release
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource


@pytest.mark.parametrize("shape", [(3, 2, 2), (12,)])
def test_private_normalisation_equals_a_slow_loop(shape):
    rng = np.random.default_rng(4)
    features = (2 * rng.standard_normal((50, 12)) + 1).astype(np.float32)
    features[:, :4] *= 0.1
    features[7, 3] = np.nan
    problem = Problem(60, shape, 4, Budget("1", 1e-5))
    channels = np.delete(features, 7, 0).astype(np.float64).reshape(49, shape[0], -1)
    means, squares = [row.mean(1) for row in channels], [(row**2).mean(1) for row in channels]
    bounds = [float(np.median([np.linalg.norm(v) for v in values])) for values in (means, squares)]  # half are clipped
    mean = sum(v * min(1, bounds[0] / np.linalg.norm(v)) for v in means)
    square = sum(v * min(1, bounds[1] / np.linalg.norm(v)) for v in squares)
    normalisation = Normalisation(*bounds, noise_multiplier=1e-12, variance_floor=0.3)
    sums = channel_sums([features], normalisation, problem)
    assert sums.mean == pytest.approx(mean, rel=1e-5, abs=1e-5)
    assert sums.square == pytest.approx(square, rel=1e-5)
    center, scale = release(sums, normalisation, problem, NoiseSource("seeded", "test"))
    variance = np.maximum(square / 60 - (mean / 60) ** 2, 0.3)
    assert (variance == 0.3).any() and (variance > 0.3).any()
    repeat = 12 // shape[0]
    assert center == pytest.approx(np.repeat(mean / 60, repeat), rel=1e-4, abs=1e-6)
    assert scale == pytest.approx(np.repeat(variance**-0.5, repeat), rel=1e-4)


def test_channels_of_too_little_variance_are_left_out_where_that_is_asked():
    problem = Problem(1000, (3, 2), 4, Budget("1", 1e-5))
    features = np.random.default_rng(0).normal(0, np.repeat([0.1, 2.0, 0.6], 2), (1000, 6)).astype(np.float32)
    given = {"mean_clip": 10.0, "square_clip": 50.0, "noise_multiplier": 1e-6, "variance_floor": 0.25}
    scales = {}
    for rule in ("floor", "drop"):
        normalisation = Normalisation(**given, low_variance=rule)
        source = NoiseSource("seeded", "test")
        _, scales[rule] = release(channel_sums([features], normalisation, problem), normalisation, problem, source)
    np.testing.assert_array_equal(scales["drop"], np.where(np.arange(6) < 2, 0, scales["floor"]))
    assert scales["floor"] == pytest.approx(np.repeat([2.0, 0.5, 1 / 0.6], 2), rel=0.1)


@pytest.mark.parametrize("most", [3, 6])
def test_means_of_subjects_with_several_records_are_never_above_those_of_records(most):
    """Exact where each has as many as the bound says, half where each has half as many; noise is that of the most."""
    features = (2 + np.random.default_rng(0).standard_normal((3000, 4, 25))).astype(np.float32).reshape(3000, 100)
    problem = Problem(1000, (4, 25), 4, Budget("1", 1e-5), unit_records=most)
    normalisation = Normalisation(100.0, 1000.0, noise_multiplier=1e-6)
    source = NoiseSource("seeded", "test")
    center, scale = release(channel_sums([features], normalisation, problem), normalisation, problem, source)
    share = 3 / most
    assert center == pytest.approx(2 * share, abs=0.02)
    assert scale == pytest.approx((5 * share - (2 * share) ** 2) ** -0.5, rel=0.02)
    (noise,) = {event.sensitivity for event in events(normalisation, problem) if event.name == "normalisation_mean"}
    assert noise == most * 100.0


@pytest.mark.parametrize(("epsilon", "rate"), [("1", 1.0), ("1", 0.25), ("inf", 1.0)])
def test_variances_below_their_noise_are_taken_to_be_as_large_as_it(epsilon, rate):
    """Else channels that hardly vary are divided by next to nothing: 37 % of ScatterNet's on CIFAR-10."""
    problem = Problem(1000, (400, 1), 4, Budget(epsilon, 1e-5))
    features = np.random.default_rng(0).normal(0, 1e-3, (1000, 400)).astype(np.float32)
    normalisation = Normalisation(1.0, 1.5, noise_multiplier=8.0, sampling_rate=rate)
    source = NoiseSource("seeded", "test")
    _, scale = release(channel_sums([features], normalisation, problem, source), normalisation, problem, source)
    noise = 8 * 1.5 / (1000 * rate)  # standard deviation of a channel's released mean square
    if epsilon == "inf":
        assert scale == pytest.approx(1e-5**-0.5)
    else:
        assert scale.max() == pytest.approx(noise**-0.5, rel=1e-6)
        assert 0.7 < (scale == scale.max()).mean() < 0.95  # normal noise exceeds its deviation one time in six
