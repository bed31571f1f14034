"""The ledger: what it says of a run."""

import functools
import math
import secrets
from dataclasses import replace

import numpy as np
import pytest

from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import LOCAL, Event
from dpstudy.privacy.ledger import SEEDED, build_ledger, check_releases, check_run, check_spent
from dpstudy.privacy.noise import NoiseSource
from dpstudy.schema.reading import check

GAUSSIAN = Event("gram", "gaussian", 5.0, 1.0)
POISSON = Event("gradient", "gaussian", 4.0, 1.0, 20, "poisson", 0.05)
SHUFFLE = Event("gradient", "gaussian", 4.0, 1.0, 20, "shuffle", 0.05, epochs=1)


@functools.cache
def ledger_of(*events, epsilon="2", noise="secure", **options):
    return build_ledger(events, Budget(epsilon, 1e-5), n=1000, unit="record", noise=noise, **options)


@pytest.mark.parametrize(
    ("events", "noise"),
    [
        ((), "secure"),
        ((GAUSSIAN,), "seeded"),
        ((GAUSSIAN, POISSON), "secure"),
        ((SHUFFLE,), "seeded"),
        ((GAUSSIAN.scaled(0.0),), "secure"),
    ],
)
def test_every_ledger_fits_the_schema(events, noise):
    ledger = ledger_of(*events, noise=noise, not_accounted=("The backbone.",))
    check(ledger, "ledger", "ledger.json")
    assert "The backbone." in ledger["not_accounted"]


def test_the_certified_epsilon_comes_from_the_events():
    ledger = ledger_of(GAUSSIAN, GAUSSIAN)
    assert ledger["guarantee"] == "proved"
    assert ledger["epsilon"] == ledger["epsilon_by"]["exact"] == certify([GAUSSIAN, GAUSSIAN], 1e-5).epsilon
    assert ledger["epsilon"] <= ledger["epsilon_by"]["rdp"] <= ledger["epsilon_by"]["zcdp"]
    assert ledger["epsilon_by"]["pld"] is None  # not computed where a closed form certifies
    assert ledger["target_epsilon"] == "2"  # said, not believed
    assert ledger["not_accounted"] == []
    assert [Event.from_json(event) for event in ledger["events"]] == [GAUSSIAN, GAUSSIAN]


@pytest.mark.parametrize(
    ("events", "options"),
    [
        ((), {"epsilon": "inf"}),
        ((GAUSSIAN.scaled(0.0),), {}),
        ((GAUSSIAN,), {"no_guarantee": "The noise was shared."}),
    ],
)
def test_no_noise_or_shared_noise_is_no_guarantee(events, options):
    ledger = ledger_of(*events, **options)
    assert ledger["guarantee"] == "none"
    assert ledger["epsilon"] is None
    assert set(ledger["epsilon_by"].values()) == {None}
    assert ledger["accountant"] == "none"
    assert ledger["not_accounted"] == [options[key] for key in options if key == "no_guarantee"]


def test_seeded_noise_says_that_it_is_not_for_release():
    assert SEEDED in ledger_of(GAUSSIAN, noise="seeded")["not_accounted"]
    assert SEEDED not in ledger_of(GAUSSIAN, noise="secure")["not_accounted"]


def test_shuffled_batches_miss_the_target_openly():
    ledger = ledger_of(SHUFFLE, epsilon="0.5")
    assert ledger["adjacency"] == "zero-out"
    assert ledger["epsilon"] > 0.5
    assert ledger["epsilon_by"]["pld"] is None


def test_releases_are_held_against_the_ledger():
    check_releases([GAUSSIAN, POISSON], {"gram": 1, "gradient": 20})
    for drawn in ({}, {"gram": 1}, {"gram": 1, "gradient": 19}, {"gram": 2, "gradient": 20}, {"gram": 1, "x": 1}):
        with pytest.raises(RuntimeError, match="drew"):
            check_releases([GAUSSIAN, POISSON], drawn)
    with pytest.raises(RuntimeError, match="drew"):
        check_releases([GAUSSIAN, POISSON], {"gram": 1, "gradient": 20, "bias": 1})


def test_a_curve_that_forgets_a_release_is_noticed():
    """What is said to be spent by a step covers all that was drawn by then."""
    some = replace(POISSON, count=5)
    check_spent([GAUSSIAN, some], {"gram": 1, "gradient": 5}, 5)
    check_spent([GAUSSIAN, some], {"gradient": 4}, 5)
    for spent, drawn in (([some], {"gram": 1, "gradient": 5}), ([GAUSSIAN, some], {"gram": 1, "gradient": 6})):
        with pytest.raises(RuntimeError, match="`spent` says that step 5 has made the releases .* drew"):
            check_spent(spent, drawn, 5)


def test_a_curve_of_a_model_before_any_release_is_noticed():
    for spent in ([GAUSSIAN], [GAUSSIAN, replace(POISSON, count=5)]):
        with pytest.raises(RuntimeError, match="step 1 has made the releases .* and nothing was released"):
            check_spent(spent, {}, 1)
    check_spent([], {}, 0)  # a public start


def test_noise_that_is_drawn_apart_from_its_sum_is_noticed():
    """Nobody could tell whether half of it was added, or none."""
    for mode in ("seeded", "secure"):
        source = NoiseSource(mode, "cell")
        source.released("gram", np.zeros((2, 2)), 5.0, symmetric=True)
        check_run([GAUSSIAN], source)
        part = NoiseSource(mode, "cell", "part")
        part.gaussian("gram", (2, 2), 5.0)
        whole = NoiseSource(mode, "cell")
        whole.adopt(part)
        for run in (part, whole):
            with pytest.raises(
                RuntimeError, match="'gram': its noise was drawn apart.* give the sum to NoiseSource.rel"
            ):
                check_run([GAUSSIAN], run)


def run_that_took(taken, units, resumed=False):
    source = NoiseSource("secure", "cell")
    for _ in range(20):
        source.released("gradient", np.zeros(1), 4.0, step=source.drawn["gradient"])
    if units:
        source.took("gradient", taken // 2, units // 2)
        source.took("gradient", taken - taken // 2, units - units // 2)
    source.resumed = resumed
    return source


@pytest.mark.parametrize(("rate", "units"), [(0.05, 20_000), (4096 / 50_000, 20 * 50_000), (0.5, 2000)])
def test_as_many_take_part_as_is_accounted(rate, units):
    event = Event("gradient", "gaussian", 4.0, 1.0, 20, "poisson", rate)
    cut = Event("gradient", "gaussian", 4.0, 1.0, 20, "truncated-poisson", rate, largest=units, units=units)
    spread = math.sqrt(units * rate * (1 - rate))
    for sampled in (event, cut):
        for far in (-4, 0, 4):
            check_run([sampled], run_that_took(round(units * rate + far * spread), units))
        for far in (-12, 12):
            with pytest.raises(RuntimeError, match="takes part in the release 'gradient' with probability"):
                check_run([sampled], run_that_took(round(units * rate + far * spread), units))
    with pytest.raises(RuntimeError, match="nobody counted who took part"):
        check_run([event], run_that_took(0, 0))
    check_run([event], run_that_took(0, 0, resumed=True))
    taken = round(units * rate)
    check_run([event], run_that_took(taken, units), n=units // 20)
    with pytest.raises(RuntimeError, match="were drawn from more than .* units"):  # records in place of persons
        check_run([event], run_that_took(taken, units), n=units // 20 - 1)
    check_run([Event("gradient", "gaussian", 4.0, 1.0, 20)], run_that_took(0, 0))  # all take part


@pytest.mark.parametrize(("mode", "refused"), [("secure", True), ("seeded", False)])
def test_secure_noise_that_is_too_coarse_for_a_release_is_refused(mode, refused):
    event = Event("gram", "gaussian", 2.0**26, 1.0)
    for size, fine in ((4, True), (5, not refused)):
        source = NoiseSource(mode, "cell", size)
        source.released("gram", np.zeros(size), 2.0**26)
        if fine:
            check_run([event], source)
        else:
            with pytest.raises(RuntimeError, match="has 5 numbers at noise multiplier 6.711e"):
                check_run([event], source)


def test_the_rounding_of_a_loader_is_noticed():
    event = Event("gradient", "gaussian", 4.0, 1.0, 20, "poisson", 1 / 13)
    generator = np.random.default_rng(secrets.randbits(60))
    taken = int(generator.binomial(20 * 50_000, 4096 / 50_000))
    with pytest.raises(RuntimeError, match="not what chance allows"):
        check_run([event], run_that_took(taken, 20 * 50_000))


def test_two_events_of_one_name_add_up():
    check_releases([GAUSSIAN, GAUSSIAN], {"gram": 2})


def test_noise_that_records_scale_has_no_one_deviation():
    assert Event("a sum", "gaussian", 3.0, 0.5).deviation == 1.5
    with pytest.raises(ValueError, match="'points': without a global sensitivity"):
        _ = Event("points", LOCAL, 3.0, None).deviation
