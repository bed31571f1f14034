"""Events in a ledger: what is written is read again, and what is repeated stands within what repeats it."""

import pytest

from dpstudy.privacy.events import TRUNCATED, Event
from dpstudy.privacy.ledger_events import REPEATED, flat, from_ledger, to_ledger

GRAM = Event("gram", "gaussian", 7.0, 1.0)
STEPS = Event("gradient", "gaussian", 2.0, 0.1, 50, "poisson", 0.05)
CUT = Event("gradient", "gaussian", 1.1, 1.0, 100, TRUNCATED, 0.02, largest=1300, units=50_000)
TRIAL = Event("trial", "gaussian", 3.0, 1.0, 20, "poisson", 0.05, trials=4.0)
SCORE = Event("score", "gaussian", 9.0, 1.0, trials=4.0)


@pytest.mark.parametrize("events", [(), (GRAM,), (GRAM, STEPS, CUT), (TRIAL, SCORE), (GRAM, TRIAL, SCORE)])
def test_what_is_written_is_read_again(events):
    assert from_ledger(to_ledger(events)) == events


def test_what_is_repeated_is_one_entry_with_the_mean_number_of_runs():
    listed = to_ledger((TRIAL, GRAM, SCORE))
    assert [event["mechanism"] for event in listed] == ["gaussian", REPEATED]
    assert listed[1]["params"] == {"distribution": "geometric", "mean": 4.0}
    assert [event["name"] for event in listed[1]["events"]] == ["trial", "score"]
    assert [(event["name"], event["trials"]) for event in flat(listed)] == [
        ("gram", None),
        ("trial", 4.0),
        ("score", 4.0),
    ]
