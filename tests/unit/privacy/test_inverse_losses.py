"""All points of a grid at once: the same bits as one at a time."""

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_mechanism as mechanisms

from dpstudy.privacy import inverse_losses
from dpstudy.privacy.events import Event
from dpstudy.privacy.loss_distributions import coarse_epsilon

CASES = [(0.4878, 1.84, 5), (0.0892, 0.93, 6), (0.01, 1.0, 1000), (0.3, 3.0, 500), (0.999, 2.0, 3), (1e-4, 0.5, 3000)]


def losses(q, noise, adjacency):
    kind = mechanisms.AdjacencyType[adjacency]
    return mechanisms.GaussianPrivacyLoss(noise, sampling_prob=q, adjacency_type=kind)


@pytest.mark.parametrize("adjacency", ["ADD", "REMOVE", "REPLACE"])
@pytest.mark.parametrize(("q", "noise", "steps"), CASES)
def test_every_point_has_the_same_bits(q, noise, steps, adjacency):
    loss, edge = losses(q, noise, adjacency), -np.log1p(-q)
    asked = np.unique(np.concatenate([np.arange(-2000, 2000) * 0.0037, [0.0, edge, -edge, edge * (1 - 1e-10)]]))
    known = loss.get_delta_for_epsilon(asked)
    with inverse_losses.all_at_once():
        found = loss.get_delta_for_epsilon(asked)
    np.testing.assert_array_equal(found, known)


@pytest.mark.parametrize(("q", "noise", "steps"), CASES)
def test_a_composition_has_the_same_bits(q, noise, steps):
    event, found = PoissonSampledDpEvent(q, GaussianDpEvent(noise)), []
    for fast in (False, True):
        accountant = PLDAccountant(value_discretization_interval=1e-3)
        if fast:
            with inverse_losses.all_at_once():
                accountant.compose(event, steps)
        else:
            accountant.compose(event, steps)
        found.append([accountant.get_epsilon(delta) for delta in (1e-3, 1e-5, 1e-8)])
    assert found[0] == found[1]


def test_it_is_what_compositions_use_and_leaves_nothing_behind(monkeypatch):
    asked, plain = [], mechanisms.GaussianPrivacyLoss.get_delta_for_epsilon
    known = inverse_losses._inverse
    monkeypatch.setattr(inverse_losses, "_inverse", lambda *given: asked.append(1) or known(*given))
    coarse_epsilon([Event("gradient", "gaussian", 1.37, 1.0, count=7, sampling="poisson", sampling_rate=0.113)], 1e-5)
    assert asked and mechanisms.GaussianPrivacyLoss.get_delta_for_epsilon is plain


@pytest.mark.parametrize("wrong", [1e-12, np.nan])
def test_where_a_point_differs_all_are_dp_accountings_own(monkeypatch, wrong):
    loss, asked = losses(0.1, 1.0, "REMOVE"), np.arange(50) * 0.01
    known = loss.get_delta_for_epsilon(asked)
    theirs = inverse_losses._inverse
    monkeypatch.setattr(inverse_losses, "_inverse", lambda *given: theirs(*given) * (1 + wrong))
    with inverse_losses.all_at_once():
        np.testing.assert_array_equal(loss.get_delta_for_epsilon(asked), known)
