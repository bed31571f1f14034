"""Renyi DP against dp-accounting and its own slower self."""

import pytest

from dpstudy.privacy import renyi
from dpstudy.privacy.events import Event
from dpstudy.privacy.renyi import RDP_ORDERS, rdp_epsilon, rough_epsilon


def full(sigma, count=1):
    return Event("release", "gaussian", sigma, 1.0, count)


def poisson(sigma, rate, count):
    return Event("release", "gaussian", sigma, 1.0, count, "poisson", rate)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 7.0, 300.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8])
def test_the_closed_form_of_renyi_dp_agrees_with_dp_accounting(sigma, delta):
    from dp_accounting import GaussianDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(RDP_ORDERS)
    accountant.compose(GaussianDpEvent(sigma), 3)
    assert rdp_epsilon([full(sigma, 3)], delta) == pytest.approx(accountant.get_epsilon(delta), rel=1e-9)


@pytest.mark.parametrize("noise", [0.5, 1.0, 20.0, 200.0])
@pytest.mark.parametrize(("rate", "count"), [(1e-4, 30), (0.01, 2000), (0.9, 1)])
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_leaving_out_large_orders_changes_no_bound(noise, rate, count, delta):
    events = [
        Event("steps", "gaussian", noise, 1.0, count=count, sampling="poisson", sampling_rate=rate),
        Event("once", "gaussian", 100.0, 1.0),
    ]
    for found, orders in ((rdp_epsilon, renyi.RDP_ORDERS), (rough_epsilon, renyi.COARSE_ORDERS)):
        assert found(events, delta) == renyi.converted(orders, renyi.sampled_curve(tuple(events), orders), delta)


def test_a_small_epsilon_needs_large_orders():
    events = [Event("once", "gaussian", 500.0, 1.0, sampling="poisson", sampling_rate=0.5)]
    small = tuple(order for order in renyi.RDP_ORDERS if order <= renyi.SMALL_ORDER)
    assert rdp_epsilon(events, 1e-5) < 0.5 * renyi.converted(small, renyi.sampled_curve(tuple(events), small), 1e-5)
