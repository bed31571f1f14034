"""Other accountants' words on a ledger: they agree with a right one, and a wrong one is told from it."""

import copy
import math
import secrets

import numpy as np
import pytest

from dpstudy.privacy import gaussian
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.certificate import AGREEMENT, BOUNDS, bounds_of, recertify
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import build_ledger

GRAM = Event("gram", "gaussian", 7.0, 1.0)
BIAS = Event("bias", "gaussian", 5.0, 0.5, 3)
STEPS = Event("gradient", "gaussian", 1.1, 1.0, 500, "poisson", 4096 / 50_000)
CUT = Event("gradient", "gaussian", 1.1, 1.0, 500, "truncated-poisson", 0.02, largest=1200, units=50_000)
SELDOM_CUT = Event("gradient", "gaussian", 1.1, 1.0, 20, "truncated-poisson", 0.02, largest=1300, units=50_000)
SHUFFLED = Event("gradient", "gaussian", 5.0, 1.0, 1000, "shuffle", 0.02, epochs=20)
ITERATED = Event("gradient", "iterated-gaussian", 5.0, 1.0, 1000, "shuffle", 0.02, epochs=20)
SECRET = Event("gradient", "iterated-gaussian", 5.0, 1.0, 1000, "shuffle", 0.02, epochs=20, secret_order=True)


def ledger_of(*events, delta=1e-5, **options):
    return build_ledger(events, Budget("2", delta), n=50_000, unit="record", noise="secure", **options)


@pytest.mark.parametrize(
    ("events", "known"),
    [
        ((GRAM, BIAS), {"exact", "pld", "rdp"}),
        ((GRAM.scaled(60),), {"exact", "pld", "rdp"}),  # epsilon 0.005
        ((STEPS,), {"rdp", "bracket"}),
        ((GRAM, STEPS.scaled(4)), {"rdp", "bracket"}),
        ((CUT,), {"pld", "bracket"}),
        ((SELDOM_CUT,), {"pld", "bracket"}),
        ((SHUFFLED,), {"exact"}),
        ((ITERATED,), {"exact"}),
        ((SECRET,), {"exact"}),
        ((SECRET, GRAM), {"exact"}),
    ],
)
def test_a_right_ledger_stands(events, known):
    found = recertify(
        ledger_of(*events), [{name: sum(e.count for e in events if e.name == name) for name in names(events)}]
    )
    assert found["faults"] == []
    assert {name for name, value in found["bounds"].items() if value is not None} == known
    tightest = found["bounds"]["exact"] or min(found["bounds"]["bracket"], found["bounds"]["pld"] or math.inf)
    assert found["epsilon"] == pytest.approx(tightest, rel=AGREEMENT)


def names(events):
    return {event.name for event in events}


def test_many_ledgers_at_random_stand():
    rng = np.random.default_rng(secrets.randbits(60))
    for _ in range(12):
        events = [
            Event(f"e{k}", "gaussian", math.exp(rng.uniform(0, 5)), 1.0, int(rng.integers(1, 40))) for k in range(3)
        ]
        if rng.random() < 0.5:
            rate = float(rng.uniform(0.01, 0.5))
            events.append(
                Event("g", "gaussian", math.exp(rng.uniform(0, 3)), 1.0, int(rng.integers(1, 300)), "poisson", rate)
            )
        found = recertify(ledger_of(*events, delta=10 ** -rng.uniform(3, 8)))
        assert found["faults"] == [], (events, found)


def test_the_closed_form_is_that_of_a_single_gaussian():
    bounds = bounds_of(ledger_of(GRAM, BIAS)["events"], 1e-6)
    assert bounds["exact"] == pytest.approx(gaussian.epsilon_of(math.sqrt(1 / 49 + 3 / 25), 1e-6), rel=1e-9)


CHANGES = [
    ({"epsilon": 0.5}, "is stated, where its events are worth"),
    ({"epsilon": 2.0}, "is stated, more than the"),
    ({"noise_multiplier": 0.5}, "is stated, where its events are worth"),
    ({"noise_multiplier": 0.9}, "is stated, where its events are worth"),
    ({"noise_multiplier": 2.0}, "is stated, more than the"),
    ({"count": 2.0}, "is stated, where its events are worth"),
    ({"delta": 0.01}, "is stated, where its events are worth"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
@pytest.mark.parametrize(
    "event", [GRAM, STEPS, CUT, ITERATED, SECRET], ids=lambda event: f"{event.mechanism} {event.sampling}"
)
def test_a_wrong_ledger_falls(event, change, words):
    """A factor on what it states, or on what really happened."""
    ledger = copy.deepcopy(ledger_of(event))
    for key, factor in change.items():
        if key in ledger:
            ledger[key] *= factor
        elif key == "count":
            again = copy.deepcopy(ledger["events"])
            ledger["events"] += again
        else:
            ledger["events"][0][key] *= factor
    faults = recertify(ledger)["faults"]
    assert len(faults) >= 1 and words in faults[0], faults


@pytest.mark.parametrize(("factor", "words"), [(0.9995, "where its events are worth"), (1.0015, "more than the")])
@pytest.mark.parametrize("events", [(STEPS,), (GRAM, STEPS.scaled(4))], ids=["sampled", "mixed"])
def test_a_thousandth_too_much_falls_and_less_than_that_where_it_is_too_little(events, factor, words):
    """As where an accountant is off that training and its certificate share: the second accountant shares nothing."""
    ledger = ledger_of(*events)
    (fault,) = recertify(ledger | {"epsilon": factor * ledger["epsilon"]})["faults"]
    assert words in fault


def test_a_sampling_rate_off_by_a_loaders_rounding_falls():
    ledger = copy.deepcopy(ledger_of(STEPS))  # 4096 of 50,000 make 13 batches: 1/13 is what a loader would have said
    ledger["epsilon"] = ledger_of(Event("gradient", "gaussian", 1.1, 1.0, 500, "poisson", 1 / 13))["epsilon"]
    assert "where its events are worth" in recertify(ledger)["faults"][0]


def test_bounds_out_of_order_are_told(monkeypatch):
    from dpstudy.privacy import certificate

    monkeypatch.setattr(certificate, "_rdp", lambda events, delta, orders: 0.5)
    certificate._bounds.cache_clear()
    (fault,) = recertify(ledger_of(GRAM, BIAS))["faults"]
    certificate._bounds.cache_clear()
    assert fault.startswith("pld gives 1.") and "more than the 0.5 of rdp" in fault


def test_draws_that_the_ledger_does_not_declare_are_told():
    ledger = ledger_of(GRAM, BIAS)
    right = {"gram": 1, "bias": 3}
    assert recertify(ledger, [right, right])["faults"] == []
    for wrong in ({}, {"gram": 1}, {"gram": 1, "bias": 2}, {"gram": 1, "bias": 4}, right | {"count": 1}):
        (fault,) = recertify(ledger, [right, wrong])["faults"]
        assert fault.startswith("seed number 2 drew noise for {") and "declares {'gram': 1, 'bias': 3}" in fault


def test_what_is_not_proved_states_no_epsilon():
    ledger = ledger_of(GRAM, no_guarantee="The noise was shared.")
    assert recertify(ledger) == {"epsilon": None, "bounds": dict.fromkeys(BOUNDS), "faults": []}
    assert recertify(ledger | {"epsilon": 1.0})["faults"] == ["nothing is proved, and yet epsilon 1 is stated"]
    assert recertify(ledger_of(GRAM) | {"epsilon": None})["faults"] == ["a proved guarantee states no epsilon"]
    silent = ledger_of(GRAM) | {"events": [GRAM.scaled(0.0).to_json()]}
    assert recertify(silent)["faults"] == ["no accountant bounds its events"]


def test_where_nothing_is_lost_another_accountant_may_find_less_than_nothing():
    ledger = ledger_of(Event("gradient", "gaussian", 6.62758, 1.0, 72, "poisson", 0.0017211), delta=7.27e-3)
    assert ledger["epsilon"] == 0 and recertify(ledger)["faults"] == []
