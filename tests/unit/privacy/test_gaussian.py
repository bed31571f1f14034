"""Exact Gaussian DP against quadrature in 40 digits."""

import math

import mpmath
import pytest

from dpstudy.privacy.events import Event
from dpstudy.privacy.gaussian import composed_mu, delta_of, epsilon_of, mu_of

GRID = [(0.01, 0.003), (0.1, 0.3), (0.5, 0.5), (1.0, 1.0), (1.0, 6.0), (2.0, 0.0), (4.0, 20.0), (30.0, 500.0)]


def quadrature(epsilon, mu):
    """The hockey-stick divergence of N(mu, 1) and N(0, 1) by integrating its definition."""
    mpmath.mp.dps = 40
    epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
    start = epsilon / mu + mu / 2  # where the densities' ratio passes exp(epsilon)

    def excess(x):
        return mpmath.npdf(x, mu, 1) - mpmath.exp(epsilon) * mpmath.npdf(x, 0, 1)

    edges = [start + step for step in (0, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)]
    return float(mpmath.quad(excess, edges))


@pytest.mark.parametrize(("mu", "epsilon"), GRID)
def test_delta_is_the_integral(mu, epsilon):
    assert delta_of(epsilon, mu) == pytest.approx(quadrature(epsilon, mu), rel=1e-8, abs=1e-300)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize("mu", [0.02, 0.3, 1.0, 5.0, 40.0])
def test_epsilon_is_on_the_curve_and_never_below_it(mu, delta):
    epsilon = epsilon_of(mu, delta)
    assert delta_of(epsilon, mu) <= delta
    assert epsilon >= 0
    if epsilon:
        assert quadrature(epsilon, mu) == pytest.approx(delta, rel=1e-6)
        assert delta_of(epsilon * (1 - 1e-6), mu) > delta


@pytest.mark.parametrize("delta", [1e-10, 1e-5])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0, 100.0])
def test_mu_inverts_epsilon_from_below(epsilon, delta):
    mu = mu_of(epsilon, delta)
    assert epsilon_of(mu, delta) <= epsilon * (1 + 1e-11)  # both are bisections of a rounded curve
    assert epsilon_of(mu * (1 + 1e-6), delta) > epsilon


def test_limits():
    assert delta_of(1.0, 0.0) == 0
    assert delta_of(1.0, math.inf) == 1
    assert math.isinf(epsilon_of(math.inf, 1e-5))
    assert math.isinf(mu_of(math.inf, 1e-5))
    assert epsilon_of(1e-9, 1e-5) == 0.0
    with pytest.raises(ValueError, match="delta"):
        epsilon_of(1.0, 0.0)


def test_composition_adds_squares_and_counts():
    events = [Event("a", "gaussian", 2.0, 7.0, 3), Event("b", "gaussian", 3.0, 1.0)]
    assert composed_mu(events) == pytest.approx(math.sqrt(3 / 4 + 1 / 9))
    assert math.isinf(composed_mu([*events, Event("c", "gaussian", 0.0, 1.0)]))


def test_shuffled_batches_cost_one_release_an_epoch_without_amplification():
    event = Event("gradient", "gaussian", 4.0, 1.0, 600, "shuffle", 0.01, epochs=6)
    assert composed_mu([event]) == pytest.approx(math.sqrt(6) / 4)
