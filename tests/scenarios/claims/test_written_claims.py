"""Claims whose entry says how they are judged: each way of comparing counts what it says, and adding one touches one
file."""

import inspect
import math
import re

import pytest
import yaml

from dpstudy.core.errors import StudyError
from dpstudy.tables import published
from dpstudy.tables.claims.comparing import check, finding
from dpstudy.tables.claims.finding import CELLS, COMPUTED, FAILS, HOLDS, OPEN
from dpstudy.tables.claims.gather import PAPERS
from dpstudy.tables.claims.grid import Triples, Value
from dpstudy.tables.claims.judge import PAPERS as MODULES
from dpstudy.tables.claims.judge import judge
from dpstudy.tables.claims.mehta2023_printed import Grid, Place
from dpstudy.tables.claims.scores import Evidence, Scores
from tests.scenarios.claims.agreeing_study import evidence, run

TRAMER = PAPERS["tramer2021"]
OURS = Scores(
    {
        ("MNIST", "linear", 1.0): Value(97.0, 0.1),
        ("MNIST", "linear", 2.0): Value(98.0, 0.1),
        ("MNIST", "linear", math.inf): Value(99.9, 0.1),
        ("MNIST", "cnn", 1.0): Value(96.0, 0.1),
        ("MNIST", "cnn", 2.0): Value(98.5, 0.1),
        ("MNIST", "nonprivate-linear", math.inf): Value(99.0, 0.1),
        ("CIFAR-10", "linear", 2.0): Value(60.0, 0.1),
        ("CIFAR-10", "cnn", 2.0): Value(50.0, 0.1),
    },
    [run("linear", "MNIST", 2.0, 98.0), run("linear", "CIFAR-10", 2.0, 60.0, n=1_000)],
)


def found(**claim):
    return finding({"section": "1", "claim": "c"} | claim, TRAMER, evidence(OURS, printed=Scores({})))


@pytest.mark.parametrize(
    ("comparison", "told"),
    [
        ({"over": "x", "left": "linear", "right": "cnn"}, "x: 2 of 3 for, 0 ties, 1 against (MNIST 2)"),
        ({"over": "x", "left": "linear", "right": "cnn", "datasets": ["CIFAR-10"]}, "x: 1 of 1 for"),
        ({"not_below": "x", "margin": 1, "left": "linear", "right": "cnn"}, "x: 3 of 3 for"),
        ({"not_below": "x", "margin": 0.1, "left": "linear", "right": "cnn"}, "x: 2 of 3 for, 0 ties, 1 against"),
        (
            {"over": "x", "left": {"best": "linear"}, "right": {"role": "cnn", "epsilon": 1}},
            "x: 1 of 1 for, 0 ties, 0 against; mean difference +2.00",  # of MNIST, at 2: what has no privacy is no best
        ),
        ({"over": "x", "left": {"best": "linear", "up_to": 1}, "right": 97.5}, "0 of 1 for, 0 ties, 1 against (MNIST)"),
        (
            {
                "over": "x",
                "left": {"best": ["cnn", "linear"]},
                "right": {"role": "nonprivate-linear", "epsilon": "inf"},
            },
            "x: 0 of 1 for, 0 ties, 1 against (MNIST); mean difference −0.50",
        ),
        (
            {"over": "x", "datasets": ["MNIST"], "cells": [{"at": "here", "left": 10, "right": {"best": "cnn"}}]},
            "1 against (here)",
        ),
        ({"over": "x", "above": 1, "left": "linear", "right": "cnn"}, "x: 1 of 2 for, 0 ties, 1 against (MNIST 2)"),
        (
            {"over": "x", "at": "at {epsilon}", "left": {"better": "cnn"}, "right": {"better": ["linear", "cnn"]}},
            "x: 0 of 3 for, 1 ties, 2 against (at 1, at 2)",
        ),
        (
            {"over": "x", "from": 2, "left": {"better": "cnn"}, "right": {"best": "linear", "up_to": "ε"}},
            "x: 1 of 2 for, 0 ties, 1 against (CIFAR-10 2)",
        ),
    ],
)
def test_each_way_of_comparing_counts_what_it_says(comparison, told):
    assert told in found(compare=[comparison]).here


def test_the_papers_numbers_count_beside_as_many_records_alone():
    """The cell on CIFAR-10 has 1,000 records."""
    one = {"over": "x", "left": {"best": "linear"}, "right": 10}
    assert "1 of 1 for" in found(compare=[one]).here
    assert found(compare=[one | {"datasets": ["CIFAR-10"]}], roles="linear").verdict == OPEN


def test_a_part_without_cells_is_told_and_an_optional_one_is_not():
    there, absent = (
        {"over": text, "left": left, "right": "cnn"} for text, left in (("a", "linear"), ("b", "iteration"))
    )
    assert found(compare=[there, absent]).here.endswith("b: no cells to compare")
    assert "b" not in found(compare=[there, absent | {"optional": True}]).here
    assert "b" not in found(compare=[there, absent | {"datasets": ["Fashion-MNIST"]}]).here
    missing = found(compare=[absent], roles="iteration")
    assert (missing.verdict, missing.here) == (OPEN, "The study has no cells to compare in the roles iteration")


def test_an_open_claim_says_why_and_what_is_printed():
    one = found(open="Nobody knows", printed="Table 9")
    assert (one.verdict, one.decided_by, one.printed, one.here) == (OPEN, "", "Table 9", "Nobody knows")


def with_functions(**claim):
    """The finding where an entry may name functions."""

    def all_pairs(scores, by=0.0):
        values = [(key, value) for key, value in scores.values.items() if key[1] == "linear"]
        return [(f"{key[0]} {key[2]:g}", value, Value(value.mean - by, 0.1)) for key, value in values]

    functions = {
        "all_pairs": all_pairs,
        "one_each": lambda scores, datasets: [(name, Value(2.0), Value(1.0)) for name in datasets],
        "unmeasured": lambda scores: None,
        "refuting": lambda known: (False, "1 is not 2"),
        "agreeing": lambda known: (True, "1 is 1"),
        "counting": lambda known: f"{len(known.ours.values)} numbers",
    }
    entry = {"section": "1", "claim": "c", "cells_alone": "There are none"} | claim
    return finding(entry, TRAMER, evidence(OURS, printed=Scores({})), functions)


@pytest.mark.parametrize(
    ("lead", "error", "printed", "verdict", "told"),
    [
        (0.0, 0.1, (1.0, 3.0), FAILS, "mean difference +0.00 ± 0.28, less than half of the least printed, +1.00"),
        (0.0, 0.1, (0.8, 3.0), OPEN, "± 0.28; undecided within the noise"),  # three errors are 0.42: over half of 0.8
        (0.0, 0.13, (1.0, 3.0), OPEN, "undecided within the noise"),  # two are 0.37, three 0.55
        (0.2, 0.1, (1.0, 3.0), OPEN, "undecided within the noise"),
        (0.0, None, (1.0, 3.0), OPEN, "undecided within the noise"),  # a single seed
        (-0.2, 0.1, (0.0, 3.0), OPEN, "undecided within the noise"),  # the paper itself has a tie
        (0.0, 0.1, (), OPEN, "undecided within the noise"),
        (
            0.4,
            0.1,
            (3.0, 3.0),
            HOLDS,
            "1 of 1 for, 0 ties, 0 against; mean difference +0.40 ± 0.28",
        ),  # small, but there
    ],
)
def test_what_noise_leaves_open_is_held_against_the_least_that_is_printed(lead, error, printed, verdict, told):
    def scores(*leads, error=0.0):
        pairs = {("linear", 50.0 + lead, e) for e, lead in enumerate(leads, 1)} | {("cnn", 50.0, 1), ("cnn", 50.0, 2)}
        return Scores({("MNIST", role, float(e)): Value(mean, error) for role, mean, e in pairs})

    known = Evidence(scores(*printed), scores(lead, error=error))
    one = finding(
        {"section": "1", "claim": "c", "compare": {"over": "x", "left": "linear", "right": "cnn"}}, TRAMER, known
    )
    assert (one.verdict, one.here[-len(told) :]) == (verdict, told)


def test_a_function_forms_the_pairs_to_compare():
    pairs = {"over": "x", "pairs": "all_pairs", "with": {"by": 1.0}}
    assert "x: 4 of 4 for" in with_functions(compare=pairs).here
    assert (
        "x: 0 of 4 for, 0 ties, 4 against (MNIST 1, MNIST 2" in with_functions(compare=pairs | {"swapped": True}).here
    )
    assert with_functions(compare=[pairs, {"over": "y", "pairs": "unmeasured"}]).here.count(":") == 1
    assert with_functions(compare={"over": "y", "pairs": "unmeasured"}).here == "There are none"


def test_data_sets_are_said_of_one_comparison_or_of_all():
    one = {"over": "x", "left": "linear", "right": "cnn"}
    assert "x: 1 of 1 for" in found(compare=one | {"datasets": ["CIFAR-10"]}).here
    assert found(compare=[one], datasets=["CIFAR-10"]) == found(compare=[one | {"datasets": ["CIFAR-10"]}])
    pairs = with_functions(compare={"over": "x", "pairs": "one_each"}, datasets=["CIFAR-10", "Fashion-MNIST"])
    assert "x: 1 of 1 for" in pairs.here  # the study has no cells of the other


def test_a_computation_refutes_and_what_stands_beside_is_told():
    pairs = {"over": "x", "pairs": "all_pairs", "with": {"by": 1.0}}
    refuted = with_functions(compare=pairs, computed="refuting")
    assert (refuted.verdict, refuted.decided_by, refuted.printed) == (FAILS, COMPUTED, "1 is not 2")
    losing = pairs | {"swapped": True, "over": "y"}
    found = with_functions(compare=pairs, computed="agreeing", beside=[losing], told="counting")
    assert (found.verdict, found.decided_by, found.printed) == (HOLDS, CELLS, "1 is 1")
    assert ". y: 0 of 4 for" in found.here and found.here.endswith(". 8 numbers")


@pytest.mark.parametrize("paper", MODULES)
def test_no_function_that_forms_pairs_or_computes_is_left_over(paper):
    formed = {
        name
        for module in MODULES[paper]
        for name, one in vars(module).items()
        if inspect.isfunction(one)
        and one.__module__ == module.__name__
        and not name.startswith("_")
        and inspect.signature(one).return_annotation in (Triples, Triples | None, tuple[bool, str])
    }
    entries = yaml.safe_dump(published.claims_of(paper))
    assert formed == {name for name in formed if re.search(rf"(pairs|computed): {name}\b", entries)}


def test_methods_are_compared_with_all_others_at_a_place_and_within_epsilons():
    values = {("DP-FC", 1): 70.0, ("DP-FC", 10): 80.0, ("DP-LS", 1): 75.0}
    places = [Place("CIFAR-10", "net"), Place("CIFAR-10", "other"), Place("CIFAR-100", "net")]
    grid = Grid({(p, row, e): Value(v, 0.1) for p in places for row, v in values.items() for e in (1.0, 2.0, 8.0)})

    def told(**comparison):
        entry = {"compare": {"over": "x", "left": "DP-FC", "right": "others"} | comparison}
        return finding(entry, None, Evidence(Grid({}), grid)).here

    assert "x: 9 of 9 for" in told() and "x: 6 of 6 for" in told(place="CIFAR-10")
    assert "x: 3 of 3 for" in told(place="CIFAR-10/other") and told(place="MNIST").startswith("No cells")
    assert "x: 3 of 3 for" in told(below=2) and "x: 6 of 6 for" in told(**{"from": 2})
    assert "x: 0 of 9 for, 0 ties, 9 against" in told(left={"method": "DP-FC", "epochs": 1})


def test_methods_are_compared_at_their_best_or_at_some_epochs():
    place = Place("CIFAR-10", "net")
    values = {("DP-FC", 1): 70.0, ("DP-FC", 10): 80.0, ("DP-LS", 1): 75.0}
    grid = Grid({(place, row, e): Value(v + (e == 8), 0.1) for row, v in values.items() for e in (1.0, 8.0)})

    def told(**comparison):
        known = Evidence(Grid({}), grid)
        return finding({"compare": [{"over": "x"} | comparison]}, None, known).here

    assert "x: 2 of 2 for" in told(left="DP-FC", right="DP-LS")
    assert "x: 1 of 1 for" in told(left="DP-FC", right="DP-LS", up_to=1)
    assert "2 against (CIFAR-10/net at 1, CIFAR-10/net at 8)" in told(
        left={"method": "DP-FC", "but": 10}, right="DP-LS"
    )
    assert "x: 0 of 2 for" in told(left={"method": "DP-FC", "epochs": 1}, right=["DP-LS", "DP-FC"])
    assert told(left="DP-FC", right="DP-LS", without_privacy=True).startswith("No cells")


@pytest.mark.parametrize(
    ("comparison", "sentence"),
    [
        ({"left": "DP-LSS", "right": "DP-LS"}, "mine: 'DP-LSS' is no method .did you mean 'DP-LS'"),
        ({"left": "DP-FC", "right": "DP-LS", "datasets": ["CIFAR-10"]}, "mine: .* have no key 'datasets'"),
        ({"left": {"role": "cnn", "epsilon": 1}, "right": "DP-LS"}, "mine: .* is for other papers"),
    ],
)
def test_what_methods_cannot_be_compared_by_is_named(comparison, sentence):
    with pytest.raises(StudyError, match=f"mehta2023.yaml: {sentence}"):
        check("mine", {"compare": [{"over": "x"} | comparison]}, "mehta2023", ())


CLAIM = {"section": "9", "claim": "Linear beats the CNN.", "compare": [{"over": "x", "left": "linear", "right": "cnn"}]}


@pytest.fixture
def adding(tmp_path, monkeypatch):
    """What writes a paper's file anew with one claim more."""
    folder = published.CLAIMS

    def add(claim):
        text = (folder / "tramer2021.yaml").read_text(encoding="utf-8")
        (tmp_path / "tramer2021.yaml").write_text(text + "\n" + yaml.safe_dump({"mine": claim}, allow_unicode=True))
        monkeypatch.setattr(published, "CLAIMS", tmp_path)
        published.claims_of.cache_clear()

    yield add
    published.claims_of.cache_clear()


def test_the_entry_of_the_page_is_judged(adding):
    page = (published.CLAIMS.parents[2] / "docs/add-a-table.md").read_text(encoding="utf-8")
    claim = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[-1])["linear-at-one"]
    adding(claim)
    ((_, one),) = judge("tramer2021", evidence(OURS), ["mine"])
    assert (one.verdict, one.decided_by) == (HOLDS, CELLS)
    assert one.here == "Linear over CNN at ε ≤ 1: 1 of 1 for, 0 ties, 0 against; mean difference +1.00 ± 0.28"
    ((_, without),) = judge("tramer2021", evidence(), ["mine"])
    assert (without.verdict, without.here) == (OPEN, "The study has no cells to compare in the roles linear and cnn")


def test_a_claim_of_ones_own_is_one_entry(adding):
    adding(CLAIM)
    (row, one) = judge("tramer2021", evidence(OURS))[-1]
    assert row["claim"] == "Linear beats the CNN." and (one.verdict, one.decided_by) == (FAILS, CELLS)
    adding(CLAIM | {"compare": [CLAIM["compare"][0] | {"datasets": ["CIFAR-10"]}]})
    assert judge("tramer2021", evidence(OURS), ["9"])[0][1].verdict == HOLDS


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"comapre": []}, "mine.*comapre"),
        ({"compare": [{"over": "x", "left": "linear"}]}, "mine.compare.0"),
        ({"compare": [{"left": "linear", "right": "cnn"}]}, "mine.compare.0"),
        ({"open": "Nobody knows"}, "mine"),
        (
            {"compare": [{"over": "x", "left": "linaer", "right": "cnn"}]},
            "mine: 'linaer' is no role .did you mean 'linear'",
        ),
        ({"compare": [{"over": "x", "left": {"best": ["cnn", "cn"]}, "right": 5}]}, "mine: 'cn' is no role"),
        ({"compare": [{"over": "x", "rising": "cnns"}]}, "mine: 'cnns' is no role"),
        ({"compare": {"over": "x", "rising": "cnns"}}, "mine: 'cnns' is no role"),
        ({"compare": {"over": "x", "pairs": "by_batches"}}, "mine: 'by_batches' is no function .* mean 'by_batch'"),
        ({"told": "failed_search"}, "mine: 'failed_search' is no function .* mean 'failed_searches'"),
        (
            {"compare": [{"over": "x", "cells": [{"left": {"role": "x", "epsilon": 1}, "right": 5}]}]},
            "mine: 'x' is no role",
        ),
        (
            {"compare": [{"over": "x", "left": {"method": "DP-LS", "epochs": 1}, "right": 5}]},
            "mine: .* is for mehta2023",
        ),
        ({"compare": [{"over": "x", "up_to": 1, "left": "linear", "right": "cnn"}]}, "mine: .* have no key 'up_to'"),
    ],
)
def test_an_entry_with_a_mistake_is_named(adding, changes, sentence):
    adding(CLAIM | changes)
    with pytest.raises(StudyError, match=f"tramer2021.yaml: {sentence}"):
        judge("tramer2021", evidence(OURS))
