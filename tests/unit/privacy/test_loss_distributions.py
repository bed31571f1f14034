"""Privacy loss distributions: against the exact Gaussian formula, and infinite where rounding leaves no delta."""

import math

import pytest

from dpstudy.privacy import gaussian
from dpstudy.privacy.events import Event
from dpstudy.privacy.loss_distributions import coarse_epsilon, pld_epsilon, pld_floor, pld_profile

FULL = (Event("gram", "gaussian", 4.0, 1.0, 3), Event("gradient", "gaussian", 2.0, 1.0))
MU = math.sqrt(3 / 16 + 1 / 4)
SAMPLED = (Event("gradient", "gaussian", 1.5, 1.0, 200, "poisson", 0.02),)


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8])
def test_full_batches_have_the_exact_epsilon_or_a_little_more(delta):
    exact, found = gaussian.epsilon_of(MU, delta), pld_epsilon(FULL, delta)
    assert exact * (1 - 1e-9) <= found <= exact * 1.001
    assert found <= coarse_epsilon(FULL, delta) <= exact * 1.1


def test_a_delta_below_what_rounding_takes_has_no_epsilon():
    assert pld_floor(FULL) == 4 * 2.0**-47 and pld_floor(SAMPLED) == 201 * 2.0**-47
    assert pld_epsilon(SAMPLED, pld_floor(SAMPLED)) == math.inf
    assert math.isfinite(pld_epsilon(SAMPLED, 3 * pld_floor(SAMPLED)))


def test_a_profile_gives_the_epsilon_of_each_delta():
    epsilon_at, at_zero = pld_profile(SAMPLED, 1e-5)
    assert epsilon_at(1e-5) == pytest.approx(pld_epsilon(SAMPLED, 1e-5), rel=1e-3)
    assert epsilon_at(at_zero) <= 1e-3 < epsilon_at(at_zero / 2)
    assert epsilon_at(pld_floor(SAMPLED)) == math.inf
