"""The conversions of anon_smoothing, by the equations that they solve."""

import math

import pytest

from dpstudy.privacy.claimed import noise_multiplier, rho_of


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 100.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-10])
def test_rho_is_where_the_papers_conversion_gives_epsilon(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert rho + 2 * math.sqrt(rho * math.log(1 / delta)) == pytest.approx(epsilon, rel=1e-9)


def test_sigma_is_that_of_theorem_1():
    assert noise_multiplier(0.5, math.exp(-4)) == pytest.approx(4.0)
    assert noise_multiplier(rho_of(2.0, 1e-5), 1e-5) < noise_multiplier(rho_of(1.0, 1e-5), 1e-5)
