"""What stands against publishing a cell."""

import pytest

from dpstudy.cell.refusals import refusals
from dpstudy.config.tuned import PAID, tuned_on

LEDGER = {"noise": "secure", "guarantee": "proved", "delta": 1e-6, "n": 50_000}
CHOICE = {"pay": "choice", "chosen": [{"ridge": 1.0}]}


def test_a_choice_that_was_paid_for_does_not_stand_against_publishing():
    assert refusals(LEDGER, PAID, []) == [] == refusals(LEDGER, "nothing", [])
    assert tuned_on({"tuned_on": "nothing"}, CHOICE) == PAID


@pytest.mark.parametrize(
    ("beforehand", "tuning"),
    [
        ("a first guess", {}),
        ("nothing", {"trials": 3, "failed": 0, "value": 90.0}),
        ("the test split", CHOICE),  # paid for one hyper-parameter, but not for the others
    ],
)
def test_a_choice_that_was_not_paid_for_does(beforehand, tuning):
    (sentence,) = refusals(LEDGER, tuned_on({"tuned_on": beforehand}, tuning), [])
    assert "which was not paid for" in sentence
    assert refusals(LEDGER, tuned_on({"tuned_on": beforehand}, tuning), [], accept=["tuning"]) == []
