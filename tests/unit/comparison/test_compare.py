"""Two result trees: what differs is told, what does not is counted, and time does not count."""

import copy
import csv
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from dpstudy.comparison.compare import compare
from dpstudy.comparison.machine import COLUMNS, as_json, write_changes
from dpstudy.comparison.means import standard_error
from dpstudy.comparison.text import as_text
from dpstudy.core.errors import StudyError

SCRIPT = Path(__file__).parents[3] / "workflow" / "compare.py"
NAMES = [f"digits/pixels/{entry}/eps={epsilon}" for entry in ("ls", "sgd") for epsilon in ("1", "inf")]
LEDGER = {
    "epsilon": 0.999,
    "delta": 1e-4,
    "guarantee": "proved",
    "epsilon_by": {"exact": 0.999, "pld": None},
    "events": [
        {"name": "gram", "mechanism": "gaussian", "noise_multiplier": 3.0, "count": 1, "sampling": "none"},
        {"name": "gram", "mechanism": "gaussian", "noise_multiplier": 5.0, "count": 1, "sampling": "none"},
        {"name": "targets", "mechanism": "gaussian", "noise_multiplier": 2.0, "count": 1, "sampling": "none"},
    ],
    "not_accounted": ["Somebody chose the rate."],
}


def metrics(name):
    dataset, features, entry, epsilon = name.split("/")
    seeds = [
        {
            "seed": seed,
            "split": "test",
            "top1": 90.0 + seed,
            "seconds": 0.1,
            "tested": {"records": 9, "names": "aaaaaaaaaaaa"},
            "groups": {"sex=F": {"n": 9, "top1": 80.0}},
        }
        for seed in range(3)
    ]
    return {
        **{"dataset": dataset, "features": features, "entry": entry, "epsilon": epsilon.removeprefix("eps=")},
        **{"method": "least_squares", "seeds": seeds, "mean": {"top1": 91.0}, "hyperparameters": {"ridge": 1.0}},
        "made_by": {"config": name, "library": "aa", "data": {"test": "cc"}, "versions": {"numpy": "2.4.6"}},
    }


class Tree:
    """A result tree whose documents a test may change."""

    def __init__(self, path):
        self.path = path
        for name in NAMES:
            self.write(name, metrics(name), LEDGER)
        self.sheet("tables/digits.csv", "digits,pixels,ls,1,91,0.5,1.25\ndigits,pixels,ls,inf,95,,1.5\n")

    def write(self, name, metrics=None, ledger=None):
        folder = self.path / "cells" / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in (("metrics.json", metrics), ("ledger.json", ledger)):
            if content is not None:
                (folder / file).write_text(json.dumps(content))

    def sheet(self, name, rows, header="dataset,features,entry,epsilon,ours,std,seconds"):
        (self.path / name).parent.mkdir(exist_ok=True)
        (self.path / name).write_text(f"{header}\n{rows}")


@pytest.fixture
def a(tmp_path):
    return Tree(tmp_path / "a")


@pytest.fixture
def b(tmp_path):
    return Tree(tmp_path / "b")


def found(a, b):
    """(what, a, b) of each change of the only cell that differs."""
    (changes,) = compare(a.path, b.path).cells.changes.values()
    return [(change.what, change.a, change.b) for change in changes]


def test_equal_trees_and_measured_time_differ_in_nothing(a, b):
    changed = metrics(NAMES[0])
    changed["seeds"][1]["seconds"] = 99.0
    b.write(NAMES[0], changed)
    b.sheet("tables/digits.csv", "digits,pixels,ls,1,91.0,0.50,7\ndigits,pixels,ls,inf,95,,8\n")
    (b.path / "cells" / "digits" / "pixels" / "new" / "eps=1").mkdir(parents=True)  # being made
    comparison = compare(a.path, b.path)
    assert not comparison.differs and comparison.cells.both == 4
    assert "cells: 4 alike, 0 differ, 0 only in A, 0 only in B" in as_text(comparison)
    assert NAMES[0] not in as_text(comparison), "identical cells are counted, not listed"


@pytest.mark.parametrize(
    ("keys", "value", "expected"),
    [
        (("made_by", "config"), "dd", ("config", NAMES[0], "dd")),
        (("made_by", "library"), "dd", ("library", "aa", "dd")),
        (("made_by", "data", "test"), "dd", ("data.test", "cc", "dd")),
        (("made_by", "versions", "numpy"), "2.5", ("versions.numpy", "2.4.6", "2.5")),
        (("hyperparameters", "ridge"), 2.0, ("hyperparameters.ridge", 1.0, 2.0)),
        (("hyperparameters", "steps"), 5, ("hyperparameters.steps", None, 5)),
        (("seeds", 2, "seed"), 7, ("seeds", "0 1 2", "0 1 7")),
        (("seeds", 2, "tested", "names"), "b", ("test records", "9 (aaaaaaaa)", "9 (aaaaaaaa), 9 (b)")),
        (("seeds", 0, "top1"), 93.0, ("top1", 91.0, 92.0)),
        (("seeds", 0, "groups", "sex=F", "top1"), 83.0, ("sex=F top1", 80.0, 81.0)),
    ],
)
def test_each_thing_in_metrics_is_told(a, b, keys, value, expected):
    changed = metrics(NAMES[0])
    place = changed
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    b.write(NAMES[0], changed)
    assert found(a, b) == [expected]


@pytest.mark.parametrize(
    ("keys", "value", "expected"),
    [
        (("epsilon",), 0.9, ("ledger.epsilon", 0.999, 0.9)),
        (("epsilon",), None, ("ledger.epsilon", 0.999, "null")),
        (("delta",), 1e-5, ("ledger.delta", 1e-4, 1e-5)),
        (("guarantee",), "claimed", ("ledger.guarantee", "proved", "claimed")),
        (("epsilon_by", "pld"), 1.0, ("ledger.epsilon_by.pld", "null", 1.0)),
        (("events", 0, "noise_multiplier"), 3.5, ("ledger.events.gram.noise_multiplier", 3.0, 3.5)),
        (("events", 1, "count"), 2, ("ledger.events.gram (2).count", 1, 2)),
        (("events", 2, "sampling"), "poisson", ("ledger.events.targets.sampling", "none", "poisson")),
        (("not_accounted",), [], ("ledger.not_accounted", "Somebody chose the rate.", None)),
    ],
)
def test_each_thing_in_a_ledger_is_told(a, b, keys, value, expected):
    changed = copy.deepcopy(LEDGER)
    place = changed
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    b.write(NAMES[0], ledger=changed)
    assert found(a, b) == [expected]


def test_an_event_that_is_gone_leaves_the_others_alone(a, b):
    b.write(NAMES[0], ledger=LEDGER | {"events": LEDGER["events"][:2]})
    assert {what.rsplit(".", 1)[0] for what, _, _ in found(a, b)} == {"ledger.events.targets"}


def test_a_standard_error_joins_seeds_and_test_records():
    rows = [{"top1": value} for value in (89.0, 90.0, 91.0, 92.0)]
    spread = math.sqrt(5 / 3) / 2
    assert standard_error(rows, "top1") == pytest.approx(spread)
    with_ends = [row | {"top1_low": row["top1"] - 1.96, "top1_high": row["top1"] + 1.96} for row in rows]
    assert standard_error(with_ends, "top1") == pytest.approx(math.sqrt(spread**2 + 1), rel=1e-4)
    assert standard_error(with_ends * 100, "top1") > 1, "more seeds do not make more test records"
    assert standard_error(rows[:1], "top1") is None


@pytest.mark.parametrize(("shift", "beyond"), [(1.7, True), (1.5, False), (-1.7, True), (0.1, False)])
def test_means_are_held_against_two_standard_errors(a, b, shift, beyond):
    """Three seeds with standard deviation 1: a difference of two such means has a standard error of 0.8165."""
    changed = metrics(NAMES[0])
    for row in changed["seeds"]:
        row["top1"] += shift
    b.write(NAMES[0], changed)
    comparison = compare(a.path, b.path)
    (change,) = comparison.cells.changes[NAMES[0]]
    assert change.error == pytest.approx(math.sqrt(2 / 3)) and change.difference == pytest.approx(shift)
    assert change.beyond is beyond
    text = as_text(comparison)
    assert f"1.6, {'beyond' if beyond else 'within'}" in text
    assert f"on the whole test split: 1 differ, {int(beyond)} by more than two standard errors" in text


def test_of_a_single_seed_nothing_is_said_about_chance(a, b):
    changed = metrics(NAMES[0])
    del changed["seeds"][1:]
    b.write(NAMES[0], changed)
    top1 = [change for change in compare(a.path, b.path).cells.changes[NAMES[0]] if change.what == "top1"]
    assert [(change.b, change.beyond) for change in top1] == [(90.0, None)]
    assert "not known" in as_text(compare(a.path, b.path))


def test_cells_and_files_of_one_tree_are_named(a, b, tmp_path):
    for file in (b.path / "cells" / NAMES[3]).iterdir():
        file.unlink()
    a.sheet("figures/old.csv", "")
    b.sheet("figures/new.csv", "")
    comparison = compare(a.path, b.path)
    assert comparison.cells.only_a == [NAMES[3]] and comparison.cells.only_b == []
    assert (comparison.sheets.only_a, comparison.sheets.only_b) == (["figures/old.csv"], ["figures/new.csv"])
    assert f"only in A\n  {NAMES[3]}" in as_text(comparison)
    write_changes(comparison, tmp_path / "changes.csv")
    rows = list(csv.DictReader((tmp_path / "changes.csv").open()))
    assert [(row["place"], row["part"], row["a"], row["b"]) for row in rows] == [
        (NAMES[3], "only", "there", ""),
        ("figures/old.csv", "only", "there", ""),
        ("figures/new.csv", "only", "", "there"),
    ]


def test_rows_of_tables_go_by_their_names(a, b):
    b.sheet(
        "tables/digits.csv",
        "digits,pixels,sgd,1,80,1,0.1\ndigits,pixels,ls,inf,95,0.2,x\ndigits,pixels,ls,1,92,0.5,x\n",
        "dataset,features,entry,epsilon,ours,std,low",
    )
    (changes,) = compare(a.path, b.path).sheets.changes.values()
    assert [(change.place, change.what, change.a, change.b) for change in changes] == [
        ("tables/digits.csv", "column low", None, "there"),
        ("tables/digits.csv digits/pixels/ls/1", "ours", 91.0, 92.0),
        ("tables/digits.csv digits/pixels/ls/inf", "std", None, 0.2),
        ("tables/digits.csv digits/pixels/sgd/1", "row", None, "there"),
    ]


def test_what_made_all_cells_is_said_once(a, b):
    for name in NAMES:
        content = metrics(name)
        content["made_by"] |= {"library": "bb"}
        b.write(name, content)
    text = as_text(compare(a.path, b.path))
    assert [line.split() for line in text.splitlines() if "library" in line] == [["library", "aa", "bb", "4"]]
    assert "of those that differ, 4 do only in what made them" in text and NAMES[0] not in text


def damaged(tree, file, text):
    (tree.path / "cells" / NAMES[0] / file).write_text(text)


NAN = json.dumps(LEDGER | {"delta": math.nan})
WRONG = {
    "no folder": (lambda tree: tree.path.rename(tree.path.with_name("gone")), "b: no such folder; name the results"),
    "no cells": (lambda tree: (tree.path / "cells").rename(tree.path / "x"), "has no folder cells"),
    "cut": (lambda tree: damaged(tree, "metrics.json", "{"), "metrics.json: not valid JSON"),
    "no metrics": (lambda tree: (tree.path / "cells" / NAMES[0] / "metrics.json").unlink(), "has no metrics.json;"),
    "no ledger": (lambda tree: (tree.path / "cells" / NAMES[0] / "ledger.json").unlink(), "has no ledger.json;"),
    "a list": (lambda tree: damaged(tree, "ledger.json", "[]"), "ledger.json: damaged, it has no 'events'"),
    "no seeds": (lambda tree: tree.write(NAMES[0], metrics(NAMES[0]) | {"seeds": []}), "'seeds' lists no seeds"),
    "groups": (
        lambda tree: tree.write(NAMES[0], metrics(NAMES[0]) | {"seeds": [{"seed": 0, "groups": {"a": 1}}]}),
        "'seeds' lists no seeds",
    ),
    "words": (
        lambda tree: tree.write(NAMES[0], metrics(NAMES[0]) | {"seeds": [{"seed": 0, "top1": "x"}]}),
        "top1 is 'x', not a number",
    ),
    "one end": (
        lambda tree: tree.write(NAMES[0], metrics(NAMES[0]) | {"seeds": [{"seed": 0, "top1": 1, "top1_low": 0}]}),
        "top1_high is None, not a number",
    ),
    "NaN": (lambda tree: damaged(tree, "ledger.json", NAN), "ledger.json: ledger.delta is nan"),
    "elsewhere": (lambda tree: tree.write(NAMES[0], metrics(NAMES[1])), f"is of the cell {NAMES[1]}"),
    "a table": (lambda tree: tree.sheet("tables/digits.csv", "1,2\n"), "digits.csv: damaged, not every line"),
    "no text": (lambda tree: (tree.path / "tables/digits.csv").write_bytes(b"\xff\xfe"), "not a CSV file"),
    "a folder": (lambda tree: (tree.path / "tables/more.csv").mkdir(), ""),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_tree_that_is_none_or_damaged_is_told_in_one_sentence(case, a, b):
    spoil, expected = WRONG[case]
    if case == "a folder":
        spoil(a)
        expected = "more.csv: cannot be read (Is a directory)"
    spoil(b)
    with pytest.raises(StudyError) as told:
        compare(a.path, b.path)
    assert expected in str(told.value) and "\n" not in str(told.value)


def test_the_results_folder_is_named_where_a_study_is_given(a, tmp_path):
    study = tmp_path / "study"
    study.mkdir()
    a.path.rename(study / "results")
    with pytest.raises(StudyError, match="has no folder cells; name the results folder of a study, such as .*results$"):
        compare(study, study)


def run(*arguments):
    return subprocess.run([sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True)


def test_the_command_ends_as_diff_does_and_needs_no_torch(a, b, tmp_path):
    same = run(a.path, b.path)
    assert (same.returncode, same.stderr) == (0, "")
    changed = metrics(NAMES[0])
    changed["seeds"][0]["top1"] = 96.0
    b.write(NAMES[0], changed)
    differs = run(a.path, b.path, "--json", "--csv", tmp_path / "out" / "changes.csv")
    assert (differs.returncode, differs.stderr) == (1, "")
    content = json.loads(differs.stdout)
    assert content == json.loads(as_json(compare(a.path, b.path)))
    assert content["cells"]["alike"] == 3 and content["differs"]
    (change,) = content["cells"]["changes"]
    assert (change["place"], change["a"], change["b"], change["beyond"]) == (NAMES[0], 91.0, 93.0, False)
    (row,) = csv.DictReader((tmp_path / "out" / "changes.csv").open())
    assert tuple(row) == COLUMNS and row["what"] == "top1" and float(row["standard_error"]) == change["standard_error"]
    wrong = run(a.path, tmp_path / "none")
    assert (wrong.returncode, wrong.stdout) == (2, "") and wrong.stderr.count("\n") == 1
    assert "none: no such folder" in wrong.stderr
    program = (
        f"import runpy, sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); runpy.run_path({str(SCRIPT)!r}); "
        "print(sorted({'torch', 'scipy', 'snakemake', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"
