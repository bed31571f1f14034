"""What releases cost, against dp-accounting and the closed form."""

import re

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.stats import norm

from dpstudy.command.costs import costs
from dpstudy.core.errors import StudyError

DELTA = 1e-5


def stated(lines):
    return float(re.search(r"ε = (\S+)", lines[1])[1]), float(re.search(r"noise multiplier (\S+)", lines[0])[1])


def test_batches_cost_what_loss_distributions_say():
    epsilon, _ = stated(costs(10_000, 500, 200, DELTA, 1.2, None))
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(0.05, GaussianDpEvent(1.2)), 200))
    assert epsilon == pytest.approx(accountant.get_epsilon(DELTA), rel=2e-3)


def test_releases_of_all_units_cost_what_the_closed_form_says():
    epsilon, _ = stated(costs(None, None, 4, DELTA, 8.0, None))
    mu = 2 / 8.0
    delta = norm.cdf(-epsilon / mu + mu / 2) - 2.718281828459045**epsilon * norm.cdf(-epsilon / mu - mu / 2)
    assert delta == pytest.approx(DELTA, rel=0.01) and delta <= DELTA


@pytest.mark.parametrize(("n", "batch"), [(None, None), (10_000, 500)])
def test_the_noise_of_a_budget_keeps_it_and_is_the_least(n, batch):
    epsilon, noise = stated(costs(n, batch, 50, DELTA, None, "2"))
    assert 1.99 < epsilon <= 2
    assert stated(costs(n, batch, 50, DELTA, 0.98 * noise, None))[0] > 2


def test_each_accountant_bounds_from_above():
    lines = costs(10_000, 500, 50, DELTA, 1.2, None)
    by = {line[2:32].strip(): float(line[32:]) for line in lines[2:]}
    assert by.keys() == {"privacy loss distributions", "Rényi DP"}
    assert stated(lines)[0] == min(by.values())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((10, 20, 1, DELTA, 1.0, None), "--batch 20: must lie between 0 and --n, 10"),
        ((None, 20, 1, DELTA, 1.0, None), "--batch: of how many"),
        ((0, None, 1, DELTA, 1.0, None), "--n 0: must be at least 1"),
        ((10, 5, 0, DELTA, 1.0, None), "--steps 0: must be at least 1"),
        ((10, 5, 1, 1.0, 1.0, None), "--delta: must lie between 0 and 1"),
        ((10, 5, 1, DELTA, 0.0, None), "--noise 0: must be a number above 0"),
        ((10, 5, 1, DELTA, float("nan"), None), "--noise nan"),
        ((10, 5, 1, DELTA, None, "inf"), "--epsilon inf: costs no noise"),
        ((10, 5, 1, DELTA, None, "much"), "much"),
    ],
)
def test_numbers_out_of_their_range_are_told(given, words):
    with pytest.raises(StudyError, match=words):
        costs(*given)
