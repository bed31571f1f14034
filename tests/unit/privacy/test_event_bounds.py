"""Bounds on the epsilon of a ledger's events: every kind of event, and those that none is known of."""

import math

import pytest

from dpstudy.privacy import iteration
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.certificate import bounds_of
from dpstudy.privacy.event_bounds import bounds
from dpstudy.privacy.events import EXPONENTIAL, TRUNCATED, Event
from dpstudy.privacy.second_accountant import bracket

SELDOM_CUT = Event("g", "gaussian", 1.1, 1.0, 100, TRUNCATED, 0.02, largest=1300, units=50_000)
ITERATED = Event("g", "iterated-gaussian", 5.0, 1.0, 1000, "shuffle", 0.02, epochs=20)
SECRET = Event("g", "iterated-gaussian", 5.0, 1.0, 1000, "shuffle", 0.02, epochs=20, secret_order=True)
CHOICE = Event("choice", EXPONENTIAL, 2.0, 1.0)
GRAM = Event("gram", "gaussian", 7.0, 1.0)
TRAIN = Event("g", "gaussian", 2.0, 1.0, 50, "poisson", 0.05, part="train")


@pytest.mark.parametrize(
    "events",
    [(GRAM,), (GRAM, CHOICE), (CHOICE, CHOICE), (ITERATED,), (SECRET, GRAM), (SECRET, ITERATED), (SELDOM_CUT, GRAM),
     (Event("g", "gaussian", 5.0, 1.0, 1000, "shuffle", 0.02, epochs=20),),
     (TRAIN, Event("score", "gaussian", 9.0, 1.0, part="validation"), GRAM)],
    ids=lambda events: "+".join(event.mechanism + event.sampling for event in events),
)  # fmt: skip
@pytest.mark.parametrize("delta", [1e-5, 1e-7])
def test_every_kind_of_event_agrees_with_training(events, delta):
    low, high = bounds([event.to_json() for event in events], delta, bracket)
    stated = certify(events, delta).epsilon
    assert low <= stated * (1 + 1e-8) and stated <= high * 1.001 and high - low <= 1e-3 * high


def test_what_it_does_not_know_it_says():
    for events, words in (
        ([Event("p", "local-sensitivity-gaussian", 3.0, None)], "local-sensitivity-gaussian is not known"),
        ([CHOICE, TRAIN], "choices or shuffled batches beside Poisson samples"),
    ):
        with pytest.raises(ValueError, match=words):
            bounds([event.to_json() for event in events], 1e-5, bracket)
    assert bounds([GRAM.to_json(), GRAM.scaled(0.0).to_json()], 1e-5, bracket) == (math.inf, math.inf)
    nested = {"name": "r", "mechanism": "repeat-and-select", "noise_multiplier": None, "sampling": "none"}
    with pytest.raises(ValueError, match="repeat-and-select is not known"):
        bounds([nested], 1e-5, bracket)


def test_secret_orders_are_the_mean_over_places():
    assert iteration.secret_order_epsilon([SECRET], 1e-6) == pytest.approx(
        bounds([SECRET.to_json()], 1e-6, bracket)[1], rel=1e-9
    )


def test_batches_that_are_often_cut_have_bounds_that_lie_apart():
    """dp-accounting's own bound of such batches is between, and no lower end is of whole batches."""
    often = Event("g", "gaussian", 1.1, 1.0, 500, TRUNCATED, 0.02, largest=1100, units=50_000)
    low, high = bounds([often.to_json()], 1e-2, bracket)
    whole = bracket([(1.1, 0.02, 500)], 1e-2)
    assert low < 0.9 * whole[0] and low <= certify([often], 1e-2).epsilon and high == math.inf


def test_an_event_of_several_choices_is_as_many():
    apart = [Event("choice", "exponential", 4.0, 1.0).to_json()] * 3
    together = [Event("choice", "exponential", 4.0, 1.0, 3).to_json()]
    assert bounds(together, 1e-6, bracket) == bounds(apart, 1e-6, bracket)
    assert bounds_of(together, 1e-6) == bounds_of(apart, 1e-6)
    assert bounds(together, 1e-6, bracket)[0] == pytest.approx(3 / 4, rel=1e-4)
