"""What each kind of release is worth to accountants, and what makes no sense for it."""

import pytest

from dpstudy.privacy.events import Event
from dpstudy.privacy.mechanisms import MECHANISMS, Gaussian, Mechanism, PureMechanism, register

ITERATED = {"mechanism": "iterated-gaussian", "count": 8, "sampling": "shuffle", "sampling_rate": 0.25, "epochs": 2}


def event(**fields):
    return Event(**({"name": "a", "noise_multiplier": 2.0, "sensitivity": 1.0} | fields))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (ITERATED | {"count": 7}, "all of them in each epoch"),
        (ITERATED | {"sampling_rate": 0.2}, "all of them in each epoch"),
        ({"mechanism": "iterated-gaussian"}, "all of them in each epoch"),
        ({"mechanism": "exponential", "trials": 3.0}, "a choice is neither sampled nor repeated"),
        ({"mechanism": "exponential", "sampling": "poisson", "sampling_rate": 0.5}, "neither sampled nor repeated"),
        ({"mechanism": "local-sensitivity-gaussian", "sensitivity": None, "trials": 2.0}, "best of several such runs"),
        ({"mechanism": "local-sensitivity-gaussian"}, "has no global sensitivity"),
        ({"mechanism": "gaussian", "sensitivity": None}, "has no global sensitivity"),
        ({"mechanism": "gaussian", "secret_order": True}, "for iteration only"),
    ],
)
def test_what_has_no_bound_is_no_event(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        event(**fields)


def test_a_unit_takes_part_as_often_as_its_mechanism_says():
    assert event(mechanism="gaussian", count=5).participations == 5
    shuffled = {"count": 8, "sampling": "shuffle", "sampling_rate": 0.25, "epochs": 2}
    assert event(mechanism="gaussian", **shuffled).participations == 2
    assert event(**ITERATED).participations == 1 + 1 / 4  # four batches: later steps hide an earlier one
    assert event(**ITERATED).to_json()["params"] == {"epochs": 2, "order": "public"}


def test_two_mechanisms_of_one_name_are_refused(monkeypatch):
    class Other(Mechanism):
        name = "gaussian"

    with pytest.raises(ValueError, match="a mechanism named 'gaussian' is there already"):
        register(Other)
    assert type(MECHANISMS["gaussian"]) is Gaussian

    class Pure(PureMechanism):
        name = "made-up"

    monkeypatch.setitem(MECHANISMS, "made-up", Pure())
    assert event(mechanism="made-up").kind.pure
    with pytest.raises(ValueError, match="made-up is neither sampled nor repeated"):
        event(mechanism="made-up", trials=2.0)
