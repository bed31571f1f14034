"""Events refuse what has no meaning."""

import math

import pytest

from dpstudy.privacy.events import Event, unamplified


@pytest.mark.parametrize(
    "change",
    [
        {"mechanism": "laplace"},
        {"sampling": "stratified"},
        {"noise_multiplier": -1.0},
        {"noise_multiplier": math.nan},
        {"sensitivity": 0.0},
        {"sensitivity": math.nan},
        {"count": 0},
        {"count": 1.5},
        {"sampling_rate": 0.0},
        {"sampling_rate": 1.1},
        {"epochs": 3},
        {"sampling": "shuffle"},
    ],
)
def test_an_event_without_meaning_is_refused(change):
    good = {"name": "a", "mechanism": "gaussian", "noise_multiplier": 1.0, "sensitivity": 1.0}
    Event(**good)
    with pytest.raises(ValueError, match="event 'a'"):
        Event(**(good | change))


@pytest.mark.parametrize("sampling", [("none", 1.0, None), ("poisson", 0.25, None), ("shuffle", 0.25, 3)])
def test_events_survive_the_ledger(sampling):
    event = Event("a", "gaussian", 1.5, 2.0, 12, *sampling)
    assert Event.from_json(event.to_json()) == event


def test_only_sampled_events_count_as_amplified():
    assert unamplified([Event("a", "gaussian", 1.0, 1.0), Event("b", "gaussian", 1.0, 1.0, 9, "poisson", 1.0)])
    assert not unamplified([Event("a", "gaussian", 1.0, 1.0), Event("b", "gaussian", 1.0, 1.0, 9, "poisson", 0.5)])
