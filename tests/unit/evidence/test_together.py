"""Recorded accuracies of several studies decide a claim together."""

from dataclasses import replace
from functools import cache

import pytest

from dpstudy.config.loading import load
from dpstudy.evidence import together
from dpstudy.evidence.measured import Measured
from dpstudy.evidence.together import NotRecordedError, judged_together
from dpstudy.evidence.verdicts import Verdict, may_judge, pool
from dpstudy.tables.claims.finding import FAILS, HOLDS, OPEN
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.judge import printed_claim
from dpstudy.tables.claims.mehta2023_printed import Grid, Place
from dpstudy.tables.published import claims_of
from tests.unit.evidence.test_verdicts import OVER_CNNS, PATE, STUDY


@cache
def studies():
    """The same study of MNIST and of Fashion-MNIST."""
    fashion = {"mnist": {"dataset": "Fashion-MNIST"}}
    table = STUDY["tables"]["claims"] | {"counterparts": fashion}
    return load(STUDY), load(STUDY | {"study": "f", "tables": {"claims": table}})


def line(study, entry, epsilon, mean, kind="full", certified=None, std=0.1):
    features = {"linear": "scatternet", "cnn": "pixels"}[entry]
    seeds = (mean, std, 5, mean - 0.2, mean + 0.2)
    ledger = (certified or epsilon, "", "1e-05", 60_000, "record", "proved", "seeded")
    what = "" if kind == "full" else "half"
    return Measured(
        study, "mnist", features, entry, epsilon, "top1", *seeds, *ledger, kind, what, "2026-11-29", "", "", ""
    )


def of(found, claim):
    return [one for one in found if one.claim.startswith(claim)]


def test_a_claim_about_several_data_sets_is_judged_on_all_of_them():
    mnist = [line("s", "linear", "3", 98.9), line("s", "cnn", "3", 98.0)]
    fashion = [line("f", "linear", "3", 89.0), line("f", "cnn", "3", 89.8)]
    (alone,) = of(judged_together(studies(), mnist), OVER_CNNS)
    assert (alone.verdict, alone.study, alone.cells) == (HOLDS, "s", 2) and "1 of 1 for" in alone.numbers
    (both,) = of(judged_together(studies(), mnist + fashion), OVER_CNNS)
    assert both.study == "s, f" and "1 of 2 for, 0 ties, 1 against (Fashion-MNIST 3)" in both.numbers
    (pooled,) = of(pool([alone], [both]), OVER_CNNS)  # the study's own verdict, by fewer, is replaced
    assert (pooled.verdict, pooled.by, pooled.numbers) == (both.verdict, "s, f", both.numbers)


def test_a_study_without_which_the_numbers_are_the_same_is_not_named():
    mnist, fashion = [line("s", "linear", "2", 98.6)], [line("f", "linear", "3", 89.0), line("f", "cnn", "3", 88.0)]
    (on_mnist,) = of(judged_together(studies(), mnist + fashion), PATE)
    assert (on_mnist.study, on_mnist.kind) == ("s", "full")


def test_areas_under_curves_are_compared_in_percent():
    area = replace(line("s", "linear", "3", 0.99, std=0.01), metric="auc")
    assert together._documents(area)[1] == Value(99.0, pytest.approx(1 / 5**0.5))
    assert together._documents(line("s", "linear", "3", 98.9, std=0.1))[1] == Value(98.9, pytest.approx(0.1 / 5**0.5))


def test_ties_stand_for_themselves_where_nothing_decides():
    ties = [line("s", "linear", "3", 98.9, std=1.0), line("s", "cnn", "3", 98.8, std=1.0)]
    (found,) = of(judged_together(studies(), ties), OVER_CNNS)
    assert found.verdict == OPEN and "1 ties" in found.numbers
    (pooled,) = of(pool([], [found]), OVER_CNNS)
    assert (pooled.verdict, pooled.by) == (OPEN, "s")


def test_what_certifies_more_than_its_epsilon_decides_nothing():
    assert of(judged_together(studies(), [line("s", "linear", "2", 98.9)]), PATE)
    assert not judged_together(studies(), [line("s", "linear", "2", 98.9, certified="2.1")])


def test_reduced_cells_are_judged_study_by_study_and_where_their_study_was_not():
    half = [line(study, "linear", "3", 98.9, kind="reduced") for study in "sf"]
    half += [line("f", "cnn", "3", 98.0, kind="reduced"), line("s", "cnn", "3", 99.8, kind="reduced")]
    found = of(judged_together(studies(), half), OVER_CNNS)
    assert [(one.study, one.verdict, one.kind, one.what) for one in found] == [
        ("s", FAILS, "reduced", "half"),
        ("f", HOLDS, "reduced", "half"),
    ]
    whole = of(judged_together(studies(), [line("s", "linear", "3", 98.9), line("s", "cnn", "3", 98.0)]), OVER_CNNS)
    (pooled,) = of(pool([], found + whole), OVER_CNNS)
    assert (pooled.verdict, pooled.by) == (HOLDS, "s")  # by what is at full size
    own = replace(found[0], verdict=HOLDS, numbers="by its own documents")
    (pooled,) = of(pool([own], found), OVER_CNNS)
    assert pooled.verdict == HOLDS and "s: by its own documents" in pooled.numbers


def test_what_a_study_left_open_yields_to_what_contradicts_alone():
    """Its own verdict knows documents too, so that it may be open for another reason than these accuracies."""
    ties = [line("s", entry, "3", 98.9, kind="reduced", std=0.1) for entry in ("linear", "cnn")]
    (absent,) = of(judged_together(studies(), ties), OVER_CNNS)
    assert absent.verdict == FAILS and "less than half of the least printed, +0.60" in absent.numbers
    own = replace(absent, verdict=OPEN, numbers="by its own documents")
    for later, verdict in ((absent, FAILS), (replace(absent, verdict=HOLDS), OPEN), (replace(absent, cells=1), OPEN)):
        (pooled,) = of(pool([own], [later]), OVER_CNNS)
        assert pooled.verdict == verdict
    (pooled,) = of(pool([replace(own, verdict=HOLDS)], [absent]), OVER_CNNS)
    assert pooled.verdict == HOLDS


def test_stand_ins_judge_the_sections_that_their_table_names():
    half = [line("s", "linear", "3", 98.9, kind="reduced"), line("s", "cnn", "3", 98.0, kind="reduced")]
    whole = [line("s", "linear", "3", 98.9), line("s", "cnn", "3", 98.0)]
    table = STUDY["tables"]["claims"]
    for sections, judged in (
        (["3.2"], False),
        (["Abstract; 3.2; Figure 1"], True),
        (["linear-over-cnns"], True),
        (["pate-on-mnist"], False),
    ):
        study = load(STUDY | {"tables": {"claims": table | {"sections": sections}}})
        assert bool(of(judged_together([study], half), OVER_CNNS)) == judged
        assert of(judged_together([study], whole), OVER_CNNS)


def test_what_a_study_stands_in_for_may_differ_from_cell_to_cell():
    half = [line("s", "linear", "3", 98.9, kind="stand-in"), line("s", "cnn", "3", 98.0, kind="stand-in")]
    (one,) = of(judged_together(studies(), [half[0], replace(half[1], what="another network")]), OVER_CNNS)
    assert one.verdict == HOLDS and one.what == f"{half[0].what}; another network"


GRID = {
    "study": "g",
    "datasets": {"cifar10": {"reader": "digits", "delta": "1e-5"}},
    "features": {"small": {"extractor": "scatternet"}, "large": {"extractor": "pixels"}},
    "methods": {"ls": {"method": "least_squares", "variant": "published", "clipping_norm": 0.1, "ridge": 1.0},
        "newton": {"method": "newton", "clipping_norm": 0.1, "ridge": 1.0}},
    "epsilons": ["0.5", "1"], "seeds": [0, 1, 2, 3, 4],
    "tables": {"claims": {"style": "claims", "paper": "mehta2023", "methods": {"DP-LS": "ls", "DP-Newton": "newton"},
        "pretraining": {"Small": "small", "Large": "large"}, "counterparts": {"cifar10": {"dataset": "CIFAR-10"}}}},
}  # fmt: skip
GROWS = "Accuracy grows with model"


def cell(features, entry, epsilon, mean, certified=None):
    one = replace(line("s", "linear", epsilon, mean, kind="stand-in", certified=certified), study="g")
    return replace(one, dataset="cifar10", features=features, entry=entry)


def test_methods_are_compared_by_recorded_accuracies_too():
    study = load(GRID)
    known = [cell("small", "ls", "0.5", 80.0), cell("large", "ls", "0.5", 82.0), cell("small", "newton", "0.5", 70.0)]
    (grows,) = of(judged_together([study], known), GROWS)
    assert (grows.verdict, grows.study, grows.kind, grows.what, grows.cells) == (HOLDS, "g", "stand-in", "half", 3)
    worse = [*known, cell("large", "ls", "1", 70.0), cell("small", "ls", "1", 90.0)]
    (grows,) = of(judged_together([study], worse), GROWS)
    assert grows.verdict == FAILS and "1 of 2 for, 0 ties, 1 against" in grows.numbers
    unkept = [*known, cell("large", "ls", "1", 70.0, certified="1.1"), cell("small", "ls", "1", 90.0)]
    assert of(judged_together([study], unkept), GROWS)[0].verdict == HOLDS  # above its epsilon: no evidence
    settings = "All private fine-tuning is full batch"
    assert not of(judged_together([study], known), settings)  # which is read from ledgers
    (own,) = of(judged_together([study], known), GROWS)
    (pooled,) = of(pool([replace(own, cells=2, verdict=FAILS)], [own]), GROWS)
    assert pooled.verdict == HOLDS  # by more cells
    (pooled,) = of(pool([replace(own, cells=4, verdict=FAILS)], [own]), GROWS)
    assert pooled.verdict == FAILS


def test_best_of_all_needs_all():
    whole, place = {("LS", 1): 80.0, ("Newton", 1): 70.0}, Place("CIFAR-10", "Small")
    values = {(place, row, 0.5): Value(mean) for row, mean in whole.items()}
    assert [one.number for one in Grid(values).leading(place, 0.5, [("LS", 1)])] == [80.0, 70.0]
    more = Grid(values | {(place, ("FC", 1), 1.0): Value(90.0)})  # was not run at 0.5
    assert more.leading(place, 0.5, [("LS", 1)]) == (Value(80.0), None)


def test_reduced_cells_do_not_confirm_what_the_printed_numbers_contradict():
    contradicted = "Without privacy end-to-end CNNs match"
    (printed,) = of(pool([]), contradicted)
    assert (printed.verdict, printed.by) == (FAILS, "the printed numbers")
    reduced = Verdict("tramer2021", printed.claim, "s", HOLDS, "numbers", "reduced", "half", "2026-11-29", 2)
    assert of(pool([reduced]), contradicted) == [printed]
    (full,) = of(pool([replace(reduced, kind="full", what="")]), contradicted)
    assert (full.verdict, full.by) == (HOLDS, "s")


def test_stand_ins_say_nothing_of_the_paper_s_own_tables():
    about = next(row for row in claims_of("mehta2023").values() if "about_the_tables" in row)
    for kind, judged in (("full", True), ("stand-in", False), ("reduced", False)):
        assert may_judge("mehta2023", printed_claim(about), {}, kind) is judged


def test_a_claim_that_needs_what_was_not_recorded_is_left_to_its_study(monkeypatch):
    asked = []

    def judge(evidence):
        try:
            return evidence.ours.runs[0].metrics.get("hyperparameters")
        except NotRecordedError as error:
            asked.append(str(error))
            raise

    monkeypatch.setattr(together, "judges", lambda paper: {"pate-on-mnist": judge})
    assert judged_together(studies(), [line("s", "linear", "2", 98.9)]) == [] and asked == ["hyperparameters"]
