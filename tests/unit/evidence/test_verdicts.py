"""Verdicts are added up: cells before what is printed, full size before reduced, and no quarrel is hidden."""

from dataclasses import replace
from functools import cache

import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.evidence.verdicts import MIXED, Verdict, merged, of_results, pool, read, write
from dpstudy.report.claims import judge_paper
from dpstudy.tables.claims.finding import FAILS, HOLDS, OPEN


@cache  # seconds, for the tests alone that need it: every worker imports this file
def open_claim() -> str:
    return next(row[1] for row in judge_paper("tramer2021")["rows"] if row[0] == OPEN)


def one() -> Verdict:
    return Verdict("tramer2021", open_claim(), "a", HOLDS, "98 and 97.", "reduced", "half the records", "2026-11-27", 9)


def verdict_on(*known):
    (found,) = (each for each in pool(known) if (each.paper, each.claim) == ("tramer2021", open_claim()))
    return found


def test_what_is_written_is_read_and_damage_is_told(tmp_path):
    write([one()], tmp_path / "v.csv")
    assert read(tmp_path / "v.csv") == [one()] and read(tmp_path / "none.csv") == []
    text = (tmp_path / "v.csv").read_text()
    for old, new, sentence in (
        ("paper,", "papers,", "its columns are not"),
        (f",{HOLDS},", ",perhaps,", "line 2 is damaged"),
        (",2026-11-27", "", "line 2 is damaged"),
        (",9", ",many", "its cells are no number"),
    ):
        (tmp_path / "v.csv").write_text(text.replace(old, new))
        with pytest.raises(StudyError, match=sentence):
            read(tmp_path / "v.csv")


def test_a_whole_study_replaces_all_its_verdicts_and_a_part_those_that_it_decides():
    other = Verdict("de2022", "x", "b", FAILS, "", "full", "", "2026-11-27", 9)
    later = Verdict("tramer2021", "y", "a", FAILS, "", "full", "", "2026-11-28", 9)
    assert merged([one(), other], [later], "a", whole=True) == [other, later]
    assert merged([one(), other], [later], "a", whole=False) == [other, one(), later]
    again = Verdict(*one().key[:2], "a", FAILS, "", "full", "", "2026-11-28", 9)
    assert merged([one(), other], [again], "a", whole=False) == [other, again]
    fewer = replace(again, cells=8)  # as of a folder that another machine filled in part
    assert merged([one(), other], [fewer], "a", whole=False) == [other, one()]
    assert merged([one(), other], [fewer], "a", whole=True) == [other, fewer]


def test_every_claim_has_a_verdict_by_what_is_known():
    found = pool([])
    assert len(found) == 150 and verdict_on().verdict == OPEN and verdict_on().numbers
    assert verdict_on(one()).verdict == HOLDS and verdict_on(one()).by == "a (reduced: half the records)"
    full = Verdict(*one().key[:2], "b", FAILS, "97 and 98.", "full", "", "2026-11-27", 9)
    assert (verdict_on(one(), full).verdict, verdict_on(one(), full).by) == (FAILS, "b")
    ties = Verdict(
        *one().key[:2], "d", OPEN, "0 of 3 for, 3 ties; undecided within the noise.", "full", "", "2026-11-27", 9
    )
    assert verdict_on(ties).verdict == OPEN and (verdict_on(ties).by, verdict_on(ties).numbers) == ("d", ties.numbers)
    assert verdict_on(ties, one()) == verdict_on(one())  # what decides comes first
    open_too = Verdict(*one().key[:2], "e", OPEN, "1 ties; undecided.", "reduced", "a tenth", "2026-11-27", 9)
    beside = verdict_on(one(), open_too)  # as near to the paper's: it decides nothing, and is told
    assert (beside.verdict, beside.kind) == (HOLDS, "reduced") and "e: 1 ties; undecided." in beside.numbers
    assert verdict_on(open_too).kind == "" and verdict_on(full, open_too) == verdict_on(full)
    again = Verdict(*one().key[:2], "c", HOLDS, "99 and 98.", "full", "", "2026-11-27", 9)
    assert verdict_on(full, again).verdict == MIXED and verdict_on(full, again).numbers.startswith("b: 97 and 98.")


STUDY = {
    "study": "s",
    "datasets": {"mnist": {"reader": "idx", "location": "mnist", "delta": "1e-5"}},
    "features": {"scatternet": {"extractor": "scatternet"}, "pixels": {"extractor": "pixels"}},
    "methods": {
        "linear": {
            "method": "first_order",
            "learning_rate": 1.0,
            "clipping_norm": 1.0,
            "steps": 10,
            "tuned_on": "none",
        },
        "cnn": {"method": "network_dpsgd", "network": "tanh-28", "optimiser": "sgd", "learning_rate": 1.0}
        | {"clipping_norm": 1.0, "batch_size": 100, "steps": 10},
    },
    "epsilons": ["2", "3"],
    "seeds": [0, 1],
    "cells": [
        {"features": ["scatternet"], "entries": ["linear"]},
        {"features": ["pixels"], "entries": ["cnn"], "epsilons": ["3"]},
    ],
    "tables": {
        "claims": {
            "style": "claims",
            "paper": "tramer2021",
            "caption": "c",
            "counterparts": {"mnist": {"dataset": "MNIST"}},
            "roles": {
                "mnist": {
                    "linear": {"features": "scatternet", "entry": "linear"},
                    "cnn": {"features": "pixels", "entry": "cnn"},
                }
            },
        }
    },
}
PATE, OVER_CNNS = "MNIST: matches PATE", "Linear models on ScatterNet"


def finish(results, features, entry, epsilon, mean, apart=0.05):
    cell = {"dataset": "mnist", "features": features, "entry": entry, "epsilon": epsilon}
    seeds = [{"seed": seed, "split": "test", "top1": mean + apart * seed} for seed in (0, 1)]
    content = {"method": "m", "classes": 10, "seeds": seeds, "made_by": {}, "hyperparameters": {}}
    folder = results / "cells/mnist" / features / entry / f"eps={epsilon}"
    write_json(folder / "metrics.json", cell | content)
    ledger = {"n": 60_000, "guarantee": "proved", "epsilon": float(epsilon), "delta": 1e-5}
    write_json(folder / "ledger.json", ledger)


def starts(found):
    return {sentence for one in found for sentence in (PATE, OVER_CNNS) if one.claim.startswith(sentence)}


def test_what_cells_decide_is_judged_as_far_as_a_study_is_finished(tmp_path):
    study, results = load(STUDY), tmp_path / "results"
    assert of_results(study | {"tables": {}}, results, "full", "", "2026-11-27") == ([], True)
    finish(results, "scatternet", "linear", "2", 98.9)
    found, whole = of_results(study, results, "reduced", "half", "2026-11-27")
    assert not whole and starts(found) == {PATE}
    (pate,) = (one for one in found if one.claim.startswith(PATE))
    assert (pate.study, pate.verdict, pate.kind, pate.what, pate.cells) == ("s", HOLDS, "reduced", "half", 1)
    assert pate.numbers.endswith("By 1 of its 3 cells.")
    finish(results, "scatternet", "linear", "3", 98.9)
    finish(results, "pixels", "cnn", "3", 98.0)
    found, whole = of_results(study, results, "full", "", "2026-11-27")
    assert whole and starts(found) == {PATE, OVER_CNNS}
    assert all(one.verdict == HOLDS and "cells." not in one.numbers for one in found if starts([one]))


def test_cells_that_noise_does_not_tell_apart_are_recorded_as_compared(tmp_path):
    study, results = load(STUDY), tmp_path / "results"
    finish(results, "scatternet", "linear", "3", 98.9, apart=0.2)
    finish(results, "pixels", "cnn", "3", 98.9, apart=0.2)
    found, _ = of_results(study, results, "full", "", "2026-11-27")
    (one,) = (one for one in found if one.claim.startswith(OVER_CNNS))
    assert one.verdict == OPEN, one.numbers
    assert "1 ties, 0 against" in one.numbers and "undecided within the noise" in one.numbers
    (pooled,) = (each for each in pool(found) if each.claim == one.claim)
    assert (pooled.verdict, pooled.by, pooled.numbers) == (OPEN, "s", one.numbers)
