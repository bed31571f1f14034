"""What a budget leaves, by the closed form of Gaussian releases."""

import math

import pytest

from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event
from dpstudy.privacy.gaussian import epsilon_of, mu_of
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.spent_sums import beyond, epsilon_of_all, fitting


def ledger(epsilon, delta=1e-5, unit="record"):
    events = [Event("x", "gaussian", 1 / mu_of(epsilon, delta), 1.0)]
    return build_ledger(events, Budget(str(epsilon), delta), n=1000, unit=unit, noise="secure")


def test_what_is_told_to_fit_fits_and_a_little_more_does_not():
    largest = fitting(3, 2, 2, 1e-5, sampled=False)
    assert epsilon_of(math.hypot(mu_of(2, 1e-5), 2**0.5 * mu_of(largest, 1e-5)), 1e-5) <= 3
    assert epsilon_of(math.hypot(mu_of(2, 1e-5), 2**0.5 * mu_of(largest * 1.2, 1e-5)), 1e-5) > 3
    assert fitting(3, 3, 1, 1e-5, False) == 0 and fitting(3, 2, 2, 1e-5, sampled=True) < largest


def test_what_fits_of_another_delta_is_told_at_that():
    """The budget is added up at the smaller one."""
    largest = fitting(3, 2, 1, 1e-5, False, 1e-3)
    assert largest < fitting(3, 2, 1, 1e-5, False)
    assert epsilon_of(math.hypot(mu_of(2, 1e-5), mu_of(largest, 1e-3)), 1e-5) <= 3


def test_a_sum_beyond_a_budget_is_told_at_the_smallest_delta_of_all():
    assert epsilon_of_all([(ledger(2), 2)], 1e-5) == pytest.approx(epsilon_of(2**0.5 * mu_of(2, 1e-5), 1e-5))
    assert beyond("c", "3", [ledger(2)], ledger(2), 1) == ""
    assert beyond("c", "2.5", [ledger(2)], ledger(2), 1).startswith(
        "cell c: with it trainings would have spent ε = 2.9"
    )
    assert beyond("c", "2.5", [], ledger(1.5, 1e-2), 1) == "", "its own is the smallest"
    assert " at δ = 1e-5, the smallest so far, on" in beyond("c", "2.5", [ledger(2)], ledger(1.5, 1e-2), 1)
    assert "of which nothing is left; leave the cell out" in beyond("c", "1.9", [ledger(2)], ledger(1), 1)
    assert "bound nothing for persons" in beyond("c", "9", [ledger(2)], ledger(1, unit="subject"), 1)
    several, one = (ledger(2, unit="subject") | {"bounds": {"records": most}} for most in (2, 1))
    assert beyond("c", "9", [several], ledger(1), 1) == "", "persons' bounds are records' too"
    assert "bounds less of a record than of a person" in beyond("c", "9", [several, one], ledger(1), 1)
    assert beyond("c", "9", [several, one], one, 1) == ""
    assert "trainings without a guarantee" in beyond("c", "9", [ledger(1) | {"guarantee": "none"}], ledger(1), 1)
    assert "without a bound" in beyond("c", "9", [], ledger(1) | {"guarantee": "none"}, 1)
