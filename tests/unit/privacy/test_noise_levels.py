"""Noise for a budget: near what tramer2021 says of its Figure 9, and exact where it can be."""

import math

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.privacy import gaussian
from dpstudy.privacy.noise_levels import noise_level

FIGURE_9 = {"records": 50000, "batch_size": 512, "epochs": 10}


def test_published_iteration_needs_less_noise_only_where_the_paper_says():
    """Figure 9: for epsilon above 40, and below 0.2, where DP-SGD's accountant ends."""

    def ratio(epsilon):
        levels = [noise_level(name, "tramer2021", epsilon, 1e-5, **FIGURE_9) for name in ("iteration", "dp-sgd")]
        return levels[0] / levels[1]

    assert ratio("40") > 1 > ratio("50")
    assert ratio("0.2") > 1 and ratio("3") > 2
    with pytest.raises(StudyError, match="cannot be reached"):
        ratio("0.18")


def test_certified_iteration_is_exact():
    level = noise_level("iteration", "certified", "3", 1e-5, **FIGURE_9)
    mu = gaussian.mu_of(3.0, 1e-5)
    assert level == pytest.approx(math.sqrt(9 / 98 + 1 / 2) / mu, rel=1e-6), "all but the last batch have the target"
    secret = noise_level("iteration-secret", "certified", "3", 1e-5, **FIGURE_9)
    assert secret != level and secret < math.sqrt(9 / 98 + 1) / mu, "less than the worst record would need alone"
    rest = (50000 - 97 * 512) / 50000
    mean = sum(
        (512 / 50000 if place < 97 else rest) * gaussian.delta_of(3.0, math.sqrt(9 / 98 + 1 / (98 - place)) / secret)
        for place in range(98)
    )
    assert mean == pytest.approx(1e-5, rel=1e-5)
