"""Claims of tramer2021: each is judged by one function, whose verdict turns when the cells do."""

import dataclasses
import math

import pytest

from dpstudy.tables.claims.finding import CELLS, COMPUTED, FAILS, HOLDS, OPEN, PRINTED
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.judge import judge, judges
from dpstudy.tables.claims.names import ROLES
from dpstudy.tables.claims.scores import Point, Scores
from dpstudy.tables.claims.tramer2021_printed import PAPER, PRIOR
from tests.scenarios.claims.agreeing_study import (
    FUNCTIONS,
    PRINTED_SCORES,
    as_the_paper_says,
    changed,
    evidence,
    run,
    turned_round,
    verdict,
)
from tests.scenarios.claims.left_over import found_in, judging


def test_every_claim_has_one_judge_and_no_function_is_left_over():
    assert judging(PAPER) == found_in(PAPER) and len(judges(PAPER)) == 46
    assert len(ROLES[PAPER]) == len(set(ROLES[PAPER]))


@pytest.mark.slow
def test_verdicts_on_the_printed_numbers_alone():
    found = [(row["section"], finding.verdict, finding.decided_by) for row, finding in judge(PAPER, evidence())]
    assert [section for section, outcome, _ in found if outcome == FAILS] == ["3.2; C.4, Table 11", "D.3; Figure 9"]
    assert [(section, by) for section, outcome, by in found if outcome == HOLDS] == [
        ("3.2, Table 3", PRINTED),
        ("3.2, Table 3", PRINTED),
        ("3.2, Table 3", PRINTED),
        ("Table 4 vs Tables 6-9", COMPUTED),
        ("C.7, Table 16", PRINTED),
        ("D.1, Claim D.1; Figure 6", COMPUTED),
        ("D.1", COMPUTED),
        ("D.4, Table 19", PRINTED),
        ("2.1; C.1-C.2", COMPUTED),
        ("B, Claim B.5", COMPUTED),
        ("B, Lemma B.4", COMPUTED),
        ("3.1", PRINTED),
        ("3.1, Table 3", PRINTED),
        ("5.1; C.7", COMPUTED),
    ]
    assert all(finding.here for _, finding in judge(PAPER, evidence()) if finding.verdict == OPEN)


def test_the_printed_numbers_take_their_roles():
    def printed(dataset, role, epsilon):
        return PRINTED_SCORES.get(dataset, role, epsilon)

    assert printed("MNIST", "linear", 2.0) == Value(98.5, 0.0)
    assert printed("MNIST", "linear", 3.0) == Value(98.7, 0.0)  # Table 19, shuffled: Table 1 ends at 2.93
    assert printed("MNIST", "linear-poisson", 3.0) == Value(98.6, 0.1 / math.sqrt(5))
    assert printed("CIFAR-10", "cnn", 3.0).mean == printed("CIFAR-10", "cnn-shuffle", 3.0).mean == 59.2
    assert printed("CIFAR-10", PRIOR, 7.53).mean == 66.2
    assert printed("CIFAR-10", "cnn-smaller", 3.0).mean == 60.7
    assert printed("Fashion-MNIST", "data-normalised", math.inf).mean == 91.0
    assert printed("CIFAR-10", "nonprivate-cnn", math.inf).mean == 80.0
    assert PRINTED_SCORES.searches["CIFAR-10", "cnn"].statistics == {
        "min": 39.4,
        "max": 59.2,
        "median": 52.5,
        "mad": 5.4,
    }


TURNING = [
    "linear_over_cnns",
    "budget_on_cifar",
    "pate_on_mnist",
    "best_by_dataset",
    "features_help_networks",
    "limit_over_earlier_results",
    "end_points",
    "without_privacy",
    "features_without_privacy",
    "over_a_larger_budget",
    "normalisation",
    "lower_rate_with_noise",
    "more_data",
    "pseudo_labels",
    "transfer_reaches",
    "transfer_from_cifar100",
    "better_sources",
    "random_features",
    "sizes_and_accuracy",
    "iteration_accuracy",
]


@pytest.mark.parametrize("name", TURNING)
def test_cells_decide_and_turned_round_they_contradict(name):
    ours = as_the_paper_says()
    assert verdict(name, ours) == (HOLDS, CELLS)
    assert verdict(name, turned_round(ours)) == (FAILS, CELLS)


@pytest.mark.parametrize("section", ["4; Figure 3", "D.6; Figure 11"])
def test_convergence(section):
    claim = judges(PAPER)["convergence-on-cifar" if section.startswith("4") else "convergence-on-grey-images"]
    ours = as_the_paper_says()
    assert claim(evidence(ours)).verdict == HOLDS
    assert claim(evidence(turned_round(ours))).verdict == FAILS
    other = as_the_paper_says(("MNIST",) if section.startswith("4") else ("CIFAR-10",))
    assert claim(evidence(other)).verdict == OPEN
    early = claim(evidence(ours)).here.rpartition("Low rate")[2]
    assert "mean difference +12.00" in early  # after 10 of 40 epochs the CNN lacks 24 points, the others 12
    assert f"{2 if section.startswith('4') else 4} of" in early


@pytest.mark.parametrize("name", TURNING)
def test_a_single_seed_decides_nothing(name):
    found = FUNCTIONS[name](evidence(as_the_paper_says(error=None)))
    assert found.verdict == OPEN or found.decided_by == PRINTED, found


SEVERAL = ["linear_over_cnns", "best_by_dataset", "normalisation", "without_privacy"]


@pytest.mark.parametrize("dataset", ["MNIST", "Fashion-MNIST", "CIFAR-10"])
@pytest.mark.parametrize("name", SEVERAL)
def test_a_claim_about_several_data_sets_is_judged_on_those_that_are_there(name, dataset):
    """As the studies are, each of one data set."""
    ours = as_the_paper_says((dataset,))
    assert verdict(name, ours) == (HOLDS, CELLS)
    assert verdict(name, turned_round(ours)) == (FAILS, CELLS)
    assert "no cells to compare" not in FUNCTIONS[name](evidence(ours)).here


def test_one_data_set_leaves_open_what_is_said_of_another():
    mnist = as_the_paper_says(("MNIST",))
    for name in ("over_a_larger_budget", "sizes_and_accuracy", "budget_on_cifar"):
        assert verdict(name, mnist) == (OPEN, "")


def test_noise_that_costs_much_at_a_low_rate_contradicts_convergence():
    """As much on the way as at the end."""
    claim = judges(PAPER)["convergence-on-cifar"]
    found = claim(evidence(changed(as_the_paper_says(), "cnn-low", -15.0, dataset="CIFAR-10")))
    assert found.verdict == FAILS and "with noise no more than 3 points below, from 25% of training on" in found.here
    assert "CIFAR-10 cnn after 20" in found.here


@pytest.mark.parametrize(
    ("name", "role", "where", "by"),
    [
        ("poisson_and_shuffle", "linear-shuffle", {}, -1.0),
        ("poisson_and_shuffle", "cnn-shuffle", {}, 1.0),
        ("transfer_from_imagenet", "nonprivate-transfer-imagenet", {}, 2.0),
        ("batch_sizes", "cnn-batches", {"entry": "0.3"}, 2.0),
        ("batch_sizes", "cnn-batches", {"entry": "-0.2"}, -2.0),
        ("close_to_the_limit", "linear", {}, -8.0),
        ("random_features", "random-patches", {"entry": "many", "epsilon": 3.0}, 25.0),
        ("more_data", "linear", {"n": 550_000}, 10.0),
        ("more_data", "cnn", {"n": 100_000}, 10.0),
        ("features_help_networks", "scatter-cnn", {"dataset": "Fashion-MNIST"}, -5.0),
        ("limit_over_earlier_results", "nonprivate-linear", {"dataset": "Fashion-MNIST"}, -8.0),
        ("linear_over_cnns", "cnn", {"dataset": "MNIST"}, 1.0),
        ("features_without_privacy", "nonprivate-scatter-cnn", {"dataset": "MNIST"}, 1.0),
        ("features_without_privacy", "nonprivate-linear", {"dataset": "Fashion-MNIST"}, 1.0),
    ],
)
def test_a_verdict_turns_when_one_role_does(name, role, where, by):
    ours = as_the_paper_says()
    assert verdict(name, ours) == (HOLDS, CELLS)
    assert verdict(name, changed(ours, role, by, **where)) == (FAILS, CELLS)


def test_where_a_curve_reaches_the_earlier_accuracy():
    ours = as_the_paper_says(("CIFAR-10",))
    found = FUNCTIONS["budget_on_cifar"](evidence(ours))
    assert "first reached at a certified ε = 2.00" in found.here  # 66.0 after three quarters of ε = 2, 70.0 at its end


def test_an_accuracy_reached_by_luck_alone_decides_nothing():
    """66.2 is the earlier accuracy: the curve has 66.3 at its end."""
    ours = as_the_paper_says(("CIFAR-10",), error=0.2)
    found = FUNCTIONS["budget_on_cifar"](evidence(changed(ours, "linear", -3.7)))
    assert found.verdict == OPEN and "nowhere passed by more than the noise" in found.here
    assert verdict("budget_on_cifar", changed(ours, "linear", -3.0)) == (HOLDS, CELLS)  # 67.0


def test_an_accuracy_passed_for_sure_beyond_the_earlier_budget_alone_decides_nothing():
    points = [Point(10.0, 2.0, Value(66.3, 0.2)), Point(20.0, 8.0, Value(67.0, 0.2))]
    curve = dataclasses.replace(run("linear", "CIFAR-10", 8.0, 67.0), curve=tuple(points))
    assert verdict("budget_on_cifar", Scores({}, [curve])) == (OPEN, "")
    late = dataclasses.replace(curve, curve=tuple(points[1:]))
    assert verdict("budget_on_cifar", Scores({}, [late])) == (FAILS, CELLS)


def test_shuffled_batches_are_compared_with_the_paper_s_margin():
    found = FUNCTIONS["poisson_and_shuffle"](evidence(as_the_paper_says()))
    assert "no more than 0.2 points below shuffled batches: 12 of 12 for" in found.here
    assert found.printed.startswith("As printed it holds") and "5 of 6 for, 1 ties" in found.printed


def with_training_accuracy(scores, ahead):
    """The same, each seed `ahead(run)` points better on training records than on test records."""

    def seeds(r):
        rows = [{"top1": r.accuracy.mean + d, "train_top1": r.accuracy.mean + d + ahead(r)} for d in (-0.05, 0.0, 0.05)]
        return dataclasses.replace(r, metrics={**r.metrics, "seeds": rows})

    return dataclasses.replace(scores, runs=[seeds(r) for r in scores.runs])


@pytest.mark.parametrize(
    ("free", "private", "found"),
    [
        (2.0, 0.2, HOLDS),
        (0.2, 2.0, FAILS),  # private models are further ahead on what they learned from
        (0.0, 30.0, FAILS),  # and reach more there
    ],
)
def test_private_models_underfit_where_training_records_are_measured(free, private, found):
    ours = as_the_paper_says()
    measured = with_training_accuracy(ours, lambda r: free if math.isinf(r.epsilon) else private)
    assert verdict("underfitting", measured) == (found, CELLS)
    assert verdict("underfitting", ours) == (OPEN, "")


@pytest.mark.parametrize(
    "name", ["limit_over_earlier_results", "end_points", "budget_on_cifar", "over_a_larger_budget"]
)
def test_cells_on_fewer_records_are_not_compared_with_printed_numbers(name):
    """Those of the paper's size are, and so are those that lost a few records to matches with public images."""
    whole = as_the_paper_says(("CIFAR-10",))
    for part, found in ((1.0, (HOLDS, CELLS)), (0.995, (HOLDS, CELLS)), (0.9, (OPEN, ""))):
        runs = [dataclasses.replace(one, n=int(part * one.n)) for one in whole.runs]
        assert verdict(name, dataclasses.replace(whole, runs=runs)) == found
