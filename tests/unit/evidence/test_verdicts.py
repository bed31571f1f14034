"""Verdicts are added up: cells before what is printed, full size before reduced, and no quarrel is hidden."""

import os
from functools import cache

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.evidence.verdicts import MIXED, Verdict, merged, of_results, pool, read, write
from dpstudy.report.claims import judge_paper
from dpstudy.tables.claims.finding import CELLS, FAILS, HOLDS, OPEN


@cache  # seconds, for the tests alone that need it: every worker imports this file
def open_claim() -> str:
    return next(row[1] for row in judge_paper("tramer2021")["rows"] if row[0] == OPEN)


def one() -> Verdict:
    return Verdict("tramer2021", open_claim(), "a", HOLDS, "98 and 97.", "reduced", "half the records", "2026-11-27")


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
    ):
        (tmp_path / "v.csv").write_text(text.replace(old, new))
        with pytest.raises(StudyError, match=sentence):
            read(tmp_path / "v.csv")


def test_a_study_that_is_recorded_anew_replaces_all_its_verdicts():
    other = Verdict("de2022", "x", "b", FAILS, "", "full", "", "2026-11-27")
    later = Verdict("tramer2021", "y", "a", FAILS, "", "full", "", "2026-11-28")
    assert merged([one(), other], [later], [("tramer2021", "a")]) == [other, later]
    assert merged([one(), other], [], []) == [other, one()], "a part of it judged nothing"


def test_every_claim_has_a_verdict_by_what_is_known():
    found = pool([])
    assert len(found) == 150 and verdict_on().verdict == OPEN and verdict_on().numbers
    assert verdict_on(one()).verdict == HOLDS and verdict_on(one()).by == "a (reduced: half the records)"
    full = Verdict(*one().key[:2], "b", FAILS, "97 and 98.", "full", "", "2026-11-27")
    assert (verdict_on(one(), full).verdict, verdict_on(one(), full).by) == (FAILS, "b")
    again = Verdict(*one().key[:2], "c", HOLDS, "99 and 98.", "full", "", "2026-11-27")
    assert verdict_on(full, again).verdict == MIXED and verdict_on(full, again).numbers.startswith("b: 97 and 98.")


def test_what_cells_decide_is_taken_from_a_finished_study(tmp_path):
    study = {"study": "s", "tables": {"claims": {"style": "claims", "paper": "tramer2021"}}}
    rows = [
        [HOLDS, "one", f"{HOLDS} ({CELLS})", "", "98."],
        [FAILS, "two", f"{FAILS} (the printed numbers)", "1.", ""],
        [OPEN, "three", OPEN, "", "No cells."],
    ]
    cell = tmp_path / "cells/a/b/c/eps=1/metrics.json"
    write_json(cell, {})
    write_json(tmp_path / "claims/tramer2021.json", {"rows": rows})
    (found,), judged = of_results(study, tmp_path, "full", "", "2026-11-27")
    assert (found.claim, found.verdict, found.numbers, found.study) == ("one", HOLDS, "98.", "s")
    assert judged == [("tramer2021", "s")]
    assert of_results(study | {"tables": {}}, tmp_path, "full", "", "2026-11-27") == ([], [])
    later = os.stat(tmp_path / "claims/tramer2021.json").st_mtime + 10
    os.utime(cell, (later, later))
    with pytest.raises(StudyError, match="is older than a cell"):
        of_results(study, tmp_path, "full", "", "2026-11-27")
