"""Budgets, events and ledgers keep their promises whatever the numbers are."""

import json
import math
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpstudy.core.errors import StudyError
from dpstudy.privacy.budget import Budget, parse_epsilon
from dpstudy.privacy.events import ITERATED, LOCAL, TRUNCATED, Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.schema.reading import check

from .bad_input import examples

NAMES = st.text(min_size=1, max_size=12)
NOISE = st.floats(1e-3, 1e4)
SENSITIVITY = st.floats(1e-6, 1e6)
_SLACK = 1e-9  # relative: two numbers that differ by rounding alone


def shortest(number):
    """A decimal in the one spelling that a config takes."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@examples(300)
@given(st.decimals("0.0001", "100000", places=4))
def test_each_number_has_one_spelling_and_comes_back(number):
    text = shortest(number)
    assert parse_epsilon(text) == float(number) and Budget(text, 1e-5).private
    assert shortest(Decimal(repr(parse_epsilon(text)))) == text
    for other in (
        text + "0" if "." in text else text + ".0",
        "0" + text,
        "+" + text,
        f" {text}",
        f"{text}\n",
        f"-{text}",
    ):
        with pytest.raises(StudyError):
            parse_epsilon(other)


@examples(300)
@given(st.one_of(st.text(max_size=12), st.from_regex(r"[0-9.einf+\-]{0,8}\n?", fullmatch=True), st.none()))
def test_any_other_epsilon_is_refused_or_positive(text):
    try:
        value = parse_epsilon(text)
    except StudyError as error:
        assert "shortest form" in str(error)
    else:
        assert value > 0 and (text == "inf" or shortest(Decimal(text)) == text)


@examples(200)
@given(st.floats(allow_nan=True))
def test_a_delta_outside_0_and_1_is_refused(delta):
    if 0 < delta < 1:
        assert Budget("1", delta).delta == delta
    else:
        with pytest.raises(StudyError, match="must lie between 0 and 1"):
            Budget("1", delta)


@st.composite
def unamplified_events(draw, noise=NOISE):
    """Releases of everything, of shuffled batches, or of the last iterate alone."""
    kind = draw(st.sampled_from(("none", "poisson at rate 1", "shuffle", ITERATED)))
    given = {"name": draw(NAMES), "noise_multiplier": draw(noise), "sensitivity": draw(SENSITIVITY)}
    if kind == "none":
        return Event(mechanism="gaussian", count=draw(st.integers(1, 5000)), **given)
    if kind == "poisson at rate 1":
        return Event(mechanism="gaussian", count=draw(st.integers(1, 50)), sampling="poisson", **given)
    epochs, batches = draw(st.integers(1, 20)), draw(st.integers(1, 40))
    shuffled = {"count": epochs * batches, "sampling": "shuffle", "sampling_rate": 1 / batches, "epochs": epochs}
    secret = kind == ITERATED and draw(st.booleans())
    return Event(mechanism=ITERATED if kind == ITERATED else "gaussian", secret_order=secret, **given, **shuffled)


@st.composite
def any_event(draw):
    """Events of every kind, those that nothing bounds included."""
    if draw(st.booleans()):
        return draw(unamplified_events(st.one_of(NOISE, st.just(0.0))))
    given = {"name": draw(NAMES), "noise_multiplier": draw(NOISE), "count": draw(st.integers(1, 50))}
    if draw(st.booleans()):
        return Event(mechanism=LOCAL, sensitivity=None, **given)
    given |= {"mechanism": "gaussian", "sensitivity": draw(SENSITIVITY), "sampling_rate": draw(st.floats(1e-4, 1))}
    if draw(st.booleans()):
        return Event(sampling="poisson", **given)
    units = draw(st.integers(1, 10**6))
    largest = math.ceil(given["sampling_rate"] * units) + draw(st.integers(0, 100))
    return Event(sampling=TRUNCATED, units=units, largest=largest, **given)


@examples(300)
@given(any_event())
def test_events_survive_the_file_of_a_ledger(event):
    assert Event.from_json(json.loads(json.dumps(event.to_json(), allow_nan=False))) == event


def iterations(events):
    """How many of the events release a last iterate: no method releases two, and their ledger has one order."""
    return sum(event.mechanism == ITERATED for event in events)


def lists_of(events, most, least=1):
    """Lists of events that one training may make."""
    return st.lists(events, min_size=least, max_size=most).filter(lambda found: iterations(found) <= 1)


def ledger_of(events, epsilon="2", delta=1e-5, **options):
    """A ledger that has been held against its schema."""
    options = {"n": 1000, "unit": "record", "noise": "secure"} | options
    ledger = build_ledger(events, Budget(epsilon, delta), **options)
    check(json.loads(json.dumps(ledger, allow_nan=False)), "ledger", "ledger.json")
    return ledger


@examples(150)
@given(
    events=lists_of(unamplified_events(st.one_of(NOISE, st.just(0.0), st.floats(1e-100, 1e100))), most=4, least=0),
    epsilon=st.sampled_from(("0.01", "1", "8", "inf")),
    delta=st.floats(1e-15, 0.5),
    unit=st.sampled_from(("record", "subject")),
    noise=st.sampled_from(("secure", "seeded")),
    reason=st.sampled_from((None, "The noise was shared.")),
)
def test_every_ledger_fits_its_schema(events, epsilon, delta, unit, noise, reason):
    ledger = ledger_of(events, epsilon, delta, unit=unit, noise=noise, no_guarantee=reason)
    assert (ledger["guarantee"] == "proved") == (ledger["epsilon"] is not None)
    assert ledger["guarantee"] != "proved" or (events and not reason and all(e.noise_multiplier for e in events))


@examples(12)
@given(lists_of(any_event(), most=2))
def test_ledgers_of_sampled_events_fit_their_schema(events):
    kinds = {event.sampling for event in events}
    # of shuffled and Poisson batches together no guarantee is known, and no method makes both
    assume(not ("shuffle" in kinds and kinds & {"poisson", TRUNCATED}))
    assume(all(event.noise_multiplier > 0.3 or event.mechanism == LOCAL for event in events))  # the others are slow
    ledger_of(events)


@examples(100)
@given(lists_of(unamplified_events(), most=4), st.floats(1, 100), st.floats(1e-12, 0.1))
def test_more_noise_never_costs_more(events, factor, delta):
    before, after = ledger_of(events, delta=delta), ledger_of([event.scaled(factor) for event in events], delta=delta)
    assume(before["epsilon"] is not None)
    assert after["epsilon"] <= before["epsilon"] * (1 + _SLACK)


@examples(100)
@given(lists_of(unamplified_events(), most=3), unamplified_events(), st.floats(1e-12, 0.1))
def test_one_release_more_never_costs_less(events, further, delta):
    assume(iterations([*events, further]) <= 1)
    before, after = ledger_of(events, delta=delta), ledger_of([*events, further], delta=delta)
    assume(after["epsilon"] is not None)
    assert after["epsilon"] >= before["epsilon"] * (1 - _SLACK)


@examples(4)
@given(st.floats(0.7, 5), st.integers(1, 50), st.floats(0.01, 0.5), st.floats(1.1, 3))
def test_sampled_batches_cost_less_with_noise_and_more_with_steps(noise, count, rate, factor):
    event = Event("gradient", "gaussian", noise, 1.0, count, "poisson", rate)
    longer = Event("gradient", "gaussian", noise, 1.0, 2 * count, "poisson", rate)
    cost = ledger_of([event])["epsilon"]
    # the grid of privacy losses is known to 1e-4 of the epsilon
    assert ledger_of([event.scaled(factor)])["epsilon"] <= cost * (1 + 2e-4)
    assert ledger_of([longer])["epsilon"] >= cost * (1 - 2e-4)
