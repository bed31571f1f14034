"""Goals: the best certified entry of the cell that a promise names, and what is said where there is none."""

from dataclasses import replace

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.evidence.goals import read, text
from tests.unit.evidence.test_measured import ROW

GOAL = {"promise": "p", "at_least": 80, "study": ROW.study, "dataset": ROW.dataset, "epsilon": "2"}


def row(entry, mean, **changes):
    return replace(ROW, entry=entry, mean=mean, std=0.2, epsilon="2", certified="2", metric="top1", **changes)


def said(*rows):
    return text([GOAL], rows).splitlines()[-1]


def test_the_best_certified_entry_counts():
    command = f"`studies/{ROW.study}.yaml`"
    assert said(row("a", 81.0), row("b", 82.0)) == f"| p | 80 at ε = 2 | 82.0 ± 0.2, {ROW.features}, b | {command} |"
    assert f"79.0 ± 0.2, {ROW.features}, a, missed" in said(row("a", 79.0))
    for other in ({"certified": ""}, {"certified": "2.1"}, {"dataset": "x"}, {"study": "x"}):
        assert "| not yet |" in said(replace(row("a", 81.0), **other))


def test_where_a_promise_is_of_certain_features_no_others_count():
    rows = [row("a", 81.0), row("b", 90.0, features="larger")]
    assert "81.0 ± 0.2" in text([GOAL | {"features": ROW.features}], rows) and "90.0 ± 0.2, larger, b" in said(*rows)


def test_a_command_stands_where_there_is_no_cell():
    goal = {"promise": "p", "command": "make demo", "goal": "60 s"}
    assert text([goal], []).splitlines()[-1] == "| p | 60 s | not yet | `make demo` |"
    said_there = goal | {"measured": "34 s, 2 cores"}
    assert text([said_there], []).splitlines()[-1] == "| p | 60 s | 34 s, 2 cores | `make demo` |"


def test_the_shipped_promises_are_read_and_others_are_refused(tmp_path):
    assert len(read()) > 15
    (tmp_path / "g.yaml").write_text("- {promise: p, at_least: 3}")
    with pytest.raises(StudyError, match="promise 1: must have"):
        read(tmp_path / "g.yaml")
