"""Claims of de2022 about its audit, judged by black-box attacks on a study's cells."""

import dataclasses
import math

import pytest

from dpstudy.tables.claims import de2022_privacy
from dpstudy.tables.claims.finding import CELLS, FAILS, HOLDS, MEASUREMENT, OPEN, PRINTED
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.scores import Run, Scores
from tests.scenarios.claims.agreeing_de2022 import FUNCTIONS, evidence

SAFE, TIGHTER = "no-violation", "tighter-on-small-sets"
BLANK, COPIES, PROTOCOL = "blank-canary", "audit-with-copies", "protocol"
BOUNDS = {(100, 1.0): 0.36, (100, 4.0): 2.4, (1000, 1.0): 0.3, (1000, 4.0): 1.1}


def attacked(records, epsilon, bound, role="audit", distances=(0.5, 0.4), multiplicity=None, pilot=1000):
    tried = [
        {"canary": canary, "learning_rate": rate, "clipping_norm": 1.0, "steps": 10, "distance": distance / rate}
        for rate in (1.0, 2.0)
        for canary, distance in zip(("blank", "noise"), distances, strict=True)
    ]
    found = {
        "records": records,
        "epsilon_lower": bound,
        "epsilon_certified": 0.99 * epsilon,
        "pilot": pilot,
        "tried": tried,
        "chosen": max(tried, key=lambda one: one["distance"]),
        "held_out": 10,
        "runs": 990,
    }
    more = {"augmentation": {"multiplicity": multiplicity}} if multiplicity else {}
    metrics, ledger = {"hyperparameters": more}, {"guarantee": "proved", "epsilon": epsilon}
    return Run("MNIST", role, "lenet", epsilon, records, Value(90.0), metrics, ledger, black_box=found)


def as_said(changed=None):
    """The largest set among the `runs`, the other `resized`, as the gathering has them."""
    bounds = BOUNDS | (changed or {})
    runs = [attacked(*key, bound) for key, bound in bounds.items()]
    runs += [attacked(100, 1.0, 0.4, "audit-copies", multiplicity=16)]
    large = [run for run in runs if run.n == 1000]
    return Scores({}, large, {}, [run for run in runs if run.n == 100])


def judged(claim, scores):
    return FUNCTIONS[claim](evidence(scores))


@pytest.mark.parametrize("claim", [SAFE, TIGHTER, BLANK, COPIES])
def test_attacks_decide(claim):
    found = judged(claim, as_said())
    assert (found.verdict, found.decided_by) == (HOLDS, CELLS), found


def test_a_bound_above_what_is_certified_refutes():
    found = judged(SAFE, as_said({(100, 4.0): 3.97}))
    assert (found.verdict, found.decided_by) == (FAILS, CELLS)
    assert "3 of 4 attacked cells" in found.here and "refuted: |D| = 100, ε = 4" in found.here


def test_what_is_certified_counts_and_not_the_target():
    assert judged(SAFE, as_said({(100, 4.0): 3.95})).verdict == HOLDS


def test_bounds_that_are_not_twice_as_high_contradict():
    assert judged(TIGHTER, as_said({(100, 4.0): 2.1})).verdict == FAILS
    assert judged(TIGHTER, as_said({(100, 1.0): 0.29})).verdict == FAILS


def test_another_canary_that_is_easier_contradicts():
    noisy = attacked(100, 1.0, 0.3, distances=(0.4, 0.5))
    found = judged(BLANK, Scores({}, [noisy]))
    assert (found.verdict, found.decided_by) == (FAILS, CELLS)
    assert "at 0 of 2 settings" in found.here and "another canary was chosen at |D| = 100, ε = 1" in found.here


def test_a_lead_that_so_few_models_have_by_chance_decides_nothing():
    for distances in ((0.5, 0.4), (0.4, 0.5)):
        found = judged(BLANK, Scores({}, [attacked(100, 1.0, 0.3, distances=distances, pilot=50)]))
        assert (found.verdict, found.decided_by) == (OPEN, "") and "undecided within the noise" in found.here
    beyond = 2 * (2 / (math.pi * 50)) ** 0.5  # 0.226
    for lead, verdict in ((0.02, HOLDS), (-0.02, OPEN)):
        clear = attacked(100, 1.0, 0.3, distances=(0.4 + beyond + lead, 0.4), pilot=50)
        assert judged(BLANK, Scores({}, [clear])).verdict == verdict


def test_one_lead_among_several_settings_is_what_chance_gives():
    beyond = 2 * (2 / (math.pi * 50)) ** 0.5
    clear = attacked(100, 1.0, 0.3, distances=(0.42 + beyond, 0.4), pilot=50)  # at rate 1; at rate 2 half of that
    small = attacked(100, 4.0, 0.3, distances=(0.42, 0.4), pilot=50)
    found = judged(BLANK, Scores({}, [clear, small]))
    assert found.verdict == OPEN and "at 4 of 4 settings of phase I, beyond chance at 1," in found.here
    both = [clear, dataclasses.replace(clear, epsilon=4.0)]
    assert judged(BLANK, Scores({}, both)).verdict == HOLDS


def test_bounds_that_cannot_differ_by_more_than_what_is_tolerated_decide_nothing():
    runs = [attacked(100, 1.0, 0.098), attacked(100, 1.0, 0.064, "audit-copies", multiplicity=16)]
    found = judged(COPIES, Scores({}, runs))
    assert (found.verdict, found.decided_by) == (OPEN, "") and "0.098 without, 0.064 with K = 16" in found.here
    runs = [attacked(100, 1.0, 0.36), attacked(100, 1.0, 0.4, "audit-copies", multiplicity=16)]
    assert judged(COPIES, Scores({}, runs)).verdict == HOLDS


def test_groups_that_privacy_costs_more_bear_out_the_warning(monkeypatch):
    rows = [{"class": "coat", "epsilon": "1", "more": "10.0", "error": "2.0"}]
    for more, verdict in (("10.0", HOLDS), ("3.0", OPEN), ("-10.0", FAILS)):
        monkeypatch.setattr(de2022_privacy, "published_rows", lambda *_, more=more: [rows[0] | {"more": more}])
        found = judged("fairness", Scores({}, []))
        assert (found.verdict, found.decided_by) == (verdict, MEASUREMENT if verdict != OPEN else "")


def test_copies_that_change_the_bound_contradict():
    scores = as_said({(100, 1.0): 0.51})
    found = judged(COPIES, scores)
    assert (found.verdict, found.decided_by) == (FAILS, CELLS) and "0.510 without, 0.400 with K = 16" in found.here


def test_the_protocol_says_how_many_models_there_were():
    found = judged(PROTOCOL, as_said())
    assert found.verdict == OPEN and "Here 1,000 models a side" in found.here


@pytest.mark.parametrize("claim", [SAFE, TIGHTER, BLANK, COPIES, PROTOCOL])
def test_cells_that_nobody_attacked_decide_nothing(claim):
    idle = [dataclasses.replace(run, black_box={}) for run in (*as_said().runs, *as_said().resized)]
    found = judged(claim, Scores({}, idle))
    assert found.verdict == OPEN or found.decided_by == PRINTED, found
    assert "The study" in found.here
