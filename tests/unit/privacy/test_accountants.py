"""Which accountant has a bound for what, and that the least of them is certified."""

import math

import pytest

from dpstudy.privacy.accountants import ACCOUNTANTS, COUPLED, PLD, RDP, UNSAMPLED, bounds_of, sampled_epsilons
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.events import Event

DELTA = 1e-6
FULL = Event("a", "gaussian", 3.0, 1.0, 4)
POISSON = Event("b", "gaussian", 1.5, 1.0, 20, "poisson", 0.05)
CUT = Event("c", "gaussian", 1.5, 1.0, 20, "truncated-poisson", 0.05, largest=90, units=1000)
SHUFFLED = Event("d", "gaussian", 2.0, 1.0, 8, "shuffle", 0.25, 2)
ITERATED = Event("e", "iterated-gaussian", 2.0, 1.0, 8, "shuffle", 0.25, 2)
CHOICE = Event("f", "exponential", 4.0, 1.0)
REPEATED = Event("g", "gaussian", 3.0, 1.0, 4, trials=5.0)


@pytest.mark.parametrize(
    ("events", "keys"),
    [
        ([FULL], "exact pld rdp zcdp"),
        ([FULL, POISSON], "pld rdp unsampled"),
        ([CUT], "pld rdp unsampled"),
        ([SHUFFLED], "exact rdp zcdp"),
        ([ITERATED, FULL], "exact rdp zcdp"),
        ([CHOICE], "exact rdp"),
        ([CHOICE, FULL], "exact rdp"),
        ([CHOICE] * 9, "rdp"),
        ([CHOICE, POISSON], "rdp"),
        ([REPEATED], "rdp"),
        ([REPEATED, FULL], "rdp"),
        ([SHUFFLED, POISSON], ""),
        ([SHUFFLED, POISSON, CHOICE], ""),
    ],
)
def test_who_has_a_bound_for_what(events, keys):
    found = [accountant.key or "unsampled" for accountant in ACCOUNTANTS if accountant.supports(events)]
    assert " ".join(found) == keys
    if not keys:
        for ask in (certify, lambda some, delta: sampled_epsilons(some)(delta)):
            with pytest.raises(ValueError, match="no common adjacency"):
                ask(events, DELTA)
        return
    bounds = {name: bound for each in bounds_of(events, DELTA, complete=True).values() for name, bound in each.items()}
    certificate = certify(events, DELTA)
    assert certificate.epsilon == pytest.approx(min(bounds.values()), rel=1e-9)
    assert all(bound >= certificate.epsilon * (1 - 1e-9) for bound in bounds.values())


def test_what_cannot_be_the_least_is_asked_for_a_complete_answer_alone():
    assert list(bounds_of([POISSON], DELTA)["rdp"]) == [] and list(bounds_of([POISSON], DELTA, True)["rdp"]) == [RDP]
    assert bounds_of([FULL], DELTA)["pld"] == {} and list(bounds_of([FULL], DELTA, True)["pld"]) == [PLD]
    assert bounds_of([CHOICE], DELTA)["rdp"] == {} and list(bounds_of([CHOICE], DELTA, True)["rdp"]) == [RDP]
    assert list(bounds_of([CUT], DELTA)["pld"]) == [PLD, PLD + COUPLED]
    assert list(bounds_of([POISSON], DELTA)[""]) == [UNSAMPLED]


def test_where_rounding_leaves_nothing_of_delta_renyi_dp_answers():
    found = bounds_of([POISSON], 1e-15)
    assert math.isinf(found["pld"][PLD]) and math.isfinite(found["rdp"][RDP])
    assert certify([POISSON], 1e-15).accountant in (RDP, UNSAMPLED)
