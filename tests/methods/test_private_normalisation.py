"""Private normalisation against a loop over records."""

import numpy as np
import pytest

from dpstudy.methods.private_normalisation import Normalisation, channel_sums, release
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
