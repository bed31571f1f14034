"""A ledger with a selection is certified anew, and a wrong one is told."""

import copy

import numpy as np
import pytest

from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.certificate import recertify
from dpstudy.privacy.events import EXPONENTIAL, Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.ledger_events import from_ledger
from dpstudy.schema.reading import check

DELTA = 1e-5
GRAM = Event("gram", "gaussian", 6.0, 1.0, part="train")
CHOICE = Event("choice", EXPONENTIAL, 1 / 0.7, 1.0, part="validation")
STEPS = Event("gradient", "gaussian", 1.5, 1.0, 200, "poisson", 0.02, part="train", trials=10.0)
SCORE = Event("score", "gaussian", 8.0, 1.0, part="validation", trials=10.0)


def exact(scores, epsilon):
    weights = np.exp(epsilon * (scores - scores.max()))
    return weights / weights.sum()


def ledger_of(*events, n=50_000):
    return build_ledger(events, Budget("2", DELTA), n=n, unit="record", noise="secure")


@pytest.mark.parametrize(
    ("events", "known"),
    [
        ((GRAM, CHOICE), {"exact", "pld"}),
        ((GRAM, CHOICE, Event("second", "gaussian", 9.0, 1.0)), {"exact", "pld"}),
        ((STEPS, SCORE), {"rdp"}),
        ((SCORE,), {"rdp"}),
    ],
)
def test_a_ledger_with_a_selection_is_written_read_and_certified_anew(events, known):
    ledger = ledger_of(*events)
    check(ledger, "ledger", "ledger.json")
    assert set(from_ledger(ledger["events"])) == set(events)
    drawn = [{event.name: event.count for event in events}]
    found = recertify(ledger, drawn)
    assert found["faults"] == [] and {name for name, value in found["bounds"].items() if value is not None} == known
    assert recertify(ledger, [drawn[0] | {events[0].name: 2 * events[0].count}])["faults"]


@pytest.mark.parametrize("events", [(GRAM.scaled(3), CHOICE), (STEPS.scaled(2), SCORE), (STEPS, SCORE.scaled(4))])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_wrong_ledger_is_told_by_others(events, factor):
    """The part that decides has its noise misstated, or its number of runs."""
    ledger = ledger_of(*events)
    worst = max(events, key=lambda event: certify([event], DELTA).epsilon)
    changed = copy.deepcopy(ledger)
    for event in (found for outer in changed["events"] for found in outer.get("events", [outer])):
        if event["name"] == worst.name:
            event["noise_multiplier"] *= factor
    assert recertify(changed)["faults"]
    if ledger["events"][0]["mechanism"] == "repeat-and-select":
        changed = copy.deepcopy(ledger)
        changed["events"][0]["params"]["mean"] *= factor
        assert recertify(changed)["faults"]
