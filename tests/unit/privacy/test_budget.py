"""Budgets and events refuse what has no meaning."""

import math

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.privacy.budget import Budget, parse_epsilon
from dpstudy.privacy.events import Event, unamplified


@pytest.mark.parametrize(
    "text", ["0.01", "0.05", "0.1", "0.5", "1", "2", "2.93", "4", "8", "10", "100", "10.01", "inf"]
)
def test_one_spelling_is_accepted(text):
    assert parse_epsilon(text) == float(text)


@pytest.mark.parametrize(
    "text",
    ["0", "0.0", "0.50", "1.0", "01", "+1", "-1", "1e-2", ".5", "1.", "nan", "Inf", "infinity", "", " 1", "1\n", "abc"],
)
def test_every_other_spelling_is_refused(text):
    with pytest.raises(StudyError, match="epsilon .*shortest form") as caught:
        parse_epsilon(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("delta", [0, 1, -1e-5, 2, math.nan])
def test_delta_lies_between_0_and_1(delta):
    with pytest.raises(StudyError, match="delta"):
        Budget("1", delta)


def test_budget_knows_whether_it_is_private():
    assert Budget("2.93", 1e-5).private and Budget("2.93", 1e-5).target == 2.93
    assert not Budget("inf", 1e-5).private


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
