"""Claims of anon_smoothing: each is judged by one function, whose verdict turns when the cells do."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from dpstudy.methods.local_sensitivity import local_sensitivity as of_points
from dpstudy.tables.claims import anon_smoothing_experiments, anon_smoothing_privacy
from dpstudy.tables.claims.anon_smoothing_experiments import label_gap
from dpstudy.tables.claims.anon_smoothing_printed import PAPER
from dpstudy.tables.claims.anon_smoothing_privacy import error_bound, local_sensitivity
from dpstudy.tables.claims.finding import CELLS, COMPUTED, FAILS, HOLDS, MEASUREMENT, OPEN, PRINTED
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.judge import judge, judges
from dpstudy.tables.claims.names import ROLES
from dpstudy.tables.claims.scores import places
from dpstudy.tables.published import LEAKS, published_rows
from tests.scenarios.claims import agreeing_smoothing
from tests.scenarios.claims.agreeing_smoothing import (
    FUNCTIONS,
    PRINTED_SCORES,
    as_the_paper_says,
    evidence,
    run,
    scores_of,
    verdict,
)
from tests.scenarios.claims.agreeing_study import moved
from tests.scenarios.claims.left_over import found_in, judging

GAP, LESS = "narrow-gap", "less-privacy-needed"
BACKBONES, RISES = "larger-backbones", "more-epsilon"
RADIOGRAPHS = "on-radiographs"
FAIR, SETTINGS, DATA = "fairness", "model-settings", "data-sets"
BOUND, PROPOSITION = "errors-below-the-bound", "instance-noise"
THEOREM, HIGHER = "zero-concentrated", "more-smoothing"
TURNING = [GAP, LESS, BACKBONES, RISES, RADIOGRAPHS, FAIR, SETTINGS]


def test_every_claim_has_one_judge_and_no_function_is_left_over():
    assert judging(PAPER) == found_in(PAPER) and len(judges(PAPER)) == 20
    assert len(ROLES[PAPER]) == len(set(ROLES[PAPER]))


def test_distances_between_neighbours_decide_what_is_compact(monkeypatch):
    names = ("CIFAR-10", "a network", "automobile"), ("CIFAR-10", "a network", "dog"), ("CIFAR-10", "a network", "cat")
    for means, expected in (((2, 4, 3), HOLDS), ((4, 2, 3), FAILS), ((2, 3, 5), FAILS), ((3.5, 4, 1), FAILS)):
        rows = [
            {"dataset": dataset, "features": features, "class": name, "mean": str(mean)}
            for (dataset, features, name), mean in zip(names, means, strict=True)
        ]
        monkeypatch.setattr(anon_smoothing_privacy, "published_rows", lambda path, paper, rows=rows: rows)
        found = FUNCTIONS["neighbour-distances"](evidence())
        assert (found.verdict, found.decided_by) == (expected, MEASUREMENT)
        assert f"features of a network: car {means[0]:g}, dog {means[1]:g}" in found.here


def test_verdicts_on_the_printed_numbers_alone():
    judged = judge(PAPER, evidence())
    found = [(row["section"], finding.verdict, finding.decided_by) for row, finding in judged]
    assert [(section, by) for section, outcome, by in found if outcome == FAILS] == [
        ("3.1, Proposition 1", COMPUTED),
        ("3.1, Theorem 1", COMPUTED),
        ("3.2, Theorem 2", COMPUTED),
        ("3.3, Theorem 3", PRINTED),
        ("3.3", COMPUTED),
        ("3.2, Proposition 2", COMPUTED),
        ("Abstract; 1", MEASUREMENT),
    ]
    assert [(section, by) for section, outcome, by in found if outcome == HOLDS] == [
        ("Figure 1; 1", MEASUREMENT),
        ("2; 4.2", COMPUTED),
    ]
    assert all(finding.here for _, finding in judged if finding.verdict == OPEN)
    held = {row["section"] for row, finding in judged if finding.printed.startswith("As printed it holds")}
    assert held == {"4.3, Table 1"}


def test_the_printed_numbers_take_their_roles_by_backbone():
    assert places(PRINTED_SCORES, "CIFAR-10") == [f"CIFAR-10, {name}" for name in ("ResNet18", "ResNet50", "ViT-B/16")]
    assert PRINTED_SCORES.get("CIFAR-10, ResNet50", "instance-smoothing", 3.0) == Value(89.9)
    assert PRINTED_SCORES.get("CIFAR-10, ViT-B/16", "dp-sgd", 8.0) == Value(94.0)
    assert PRINTED_SCORES.get("CIFAR-10, ResNet18", "nonprivate", math.inf) == Value(93.2)
    assert {one.data for one in PRINTED_SCORES.runs} == {"CIFAR-10"} and len(PRINTED_SCORES.runs) == 15


@pytest.mark.parametrize("claim", TURNING)
def test_cells_decide(claim):
    assert verdict(claim, as_the_paper_says()) == (HOLDS, CELLS)


def changed(role, by, **named):
    """The agreeing study with the cells of a role moved."""

    def wanted(one):
        return one.role == role and all(getattr(one, name) == value for name, value in named.items())

    return moved(as_the_paper_says(), wanted, lambda mean: mean + by)


@pytest.mark.parametrize(
    ("claim", "role", "by", "named"),
    [
        (GAP, "nonprivate", 2.0, {}),
        (LESS, "instance-smoothing", -4.0, {"epsilon": 3.0}),
        (LESS, "dp-sgd", 4.0, {"epsilon": 8.0, "backbone": "small"}),
        (BACKBONES, "instance-smoothing", -8.0, {"backbone": "large"}),
        (RISES, "instance-smoothing", -6.0, {"epsilon": 8.0}),
        (RISES, "dp-sgd", 6.0, {"epsilon": 3.0}),
        (RADIOGRAPHS, "dp-sgd", 20.0, {"data": "CheXpert"}),
        (RADIOGRAPHS, "nonprivate", 5.0, {"data": "CheXpert"}),
    ],
)
def test_a_verdict_turns_when_one_role_does(claim, role, by, named):
    assert verdict(claim, changed(role, by, **named)) == (FAILS, CELLS)


@pytest.mark.parametrize("claim", [*TURNING, BOUND])
def test_a_single_seed_decides_nothing(claim):
    found = FUNCTIONS[claim](evidence(as_the_paper_says(error=None), metric="top1" if claim == BOUND else "auc"))
    assert found.verdict == OPEN or found.decided_by == PRINTED, found


@pytest.mark.parametrize("claim", [*TURNING, BOUND])
def test_without_the_cells_of_its_roles_a_claim_says_what_is_lacking(claim):
    ours = as_the_paper_says(wanted=lambda one: one.role == "kernel-mean")
    found = FUNCTIONS[claim](evidence(ours))
    assert found.decided_by in ("", PRINTED) and "The study has no" in found.here


def test_claims_are_judged_on_their_own_data_set():
    chest = as_the_paper_says(wanted=lambda one: one.data == "CheXpert")
    assert {verdict(claim, chest) for claim in (GAP, LESS, BACKBONES, RISES)} == {(OPEN, "")}
    assert verdict(RADIOGRAPHS, as_the_paper_says(wanted=lambda one: one.data != "CheXpert")) == (OPEN, "")


def test_what_a_proof_reaches_is_told_beside_the_claim():
    found = FUNCTIONS[LESS](evidence(as_the_paper_says()))
    assert "Kernel means, whose ε is proved, at ε = 3 over DP-SGD at ε = 8: 0 of 2 for, 0 ties, 2 against" in found.here
    assert "Kernel means, whose ε is proved, over DP-SGD at the same ε: 4 of 4 for" in found.here


def test_the_gap_between_labels_is_of_each_seed_and_in_percent():
    cells = {one.role: one for one in as_the_paper_says().runs if one.dataset == "CheXpert, small"}
    gap = label_gap(cells["dp-sgd"], "auc")
    assert gap.mean == pytest.approx(16.0) and gap.error == pytest.approx(0.0, abs=1e-9)
    assert label_gap(cells["dp-sgd"], "top1") is None
    found = FUNCTIONS[FAIR](evidence(as_the_paper_says()))
    assert "(" not in found.here and "DP-SGD's gap over smoothing's: 2 of 2 for, 0 ties, 0 against; mean" in found.here


@pytest.mark.parametrize(
    ("role", "apart"), [("instance-smoothing", (-9, 0, 9)), ("dp-sgd", (0, 0, 0)), ("instance-smoothing", (9, 9, 9))]
)
def test_groups_turn_the_verdict_on_fairness(role, apart, monkeypatch):
    """Smoothing's gap is large; DP-SGD has none; the rarest label gains."""
    monkeypatch.setitem(agreeing_smoothing.APART, role, apart)
    assert verdict(FAIR, as_the_paper_says()) == (FAILS, CELLS)


def test_the_largest_epsilon_stands_in_where_there_is_no_8():
    ours = as_the_paper_says(wanted=lambda one: one.epsilon != 8.0)
    assert verdict(FAIR, ours) == (HOLDS, CELLS) and verdict(GAP, ours) == (OPEN, "")


@pytest.mark.parametrize("claim", [PROPOSITION, THEOREM])
def test_audits_are_told_beside_what_they_refute(claim):
    found = FUNCTIONS[claim](evidence(as_the_paper_says()))
    assert (found.verdict, found.decided_by) == (FAILS, COMPUTED)
    assert (
        "Attacks that replace a record refute the claimed ε in 10 of 10 cells, exceeding the 2ε that a claim for "
        "adding or removing one allows. CIFAR-10, small: ε ≥ 12.00 where 3 is claimed, " in found.here
    )
    quiet = scores_of([run("CIFAR-10", "instance-smoothing", 3.0, 86.0, lower=0.5)])
    told = FUNCTIONS[claim](evidence(quiet)).here
    assert "in 0 of 1 cells" in told and "CIFAR-10, small: ε ≥ 0.50 where 3 is claimed" in told
    assert "no audits" in FUNCTIONS[claim](evidence()).here


@pytest.mark.parametrize(("copies", "n"), [(1, 20), (7, 20), (20, 20)])
def test_local_sensitivities_are_those_of_the_method(copies, n):
    points = torch.zeros(n, 2)
    points[copies:, 0] = 1000.0 * torch.arange(1, n - copies + 1)
    found = of_points(points, torch.ones(n), "density")[0] * 2 * math.pi  # in units of K_h(0)
    assert float(found) == pytest.approx(float(local_sensitivity(copies, n)), rel=1e-5, abs=1e-12)


def test_the_error_bound_is_the_printed_one_and_vacuous_at_3():
    bounds = [error_bound(epsilon) for epsilon in (3.0, 8.0, math.inf)]
    assert np.round(bounds, 2).tolist() == [1.37, 0.2, 0.0]  # section 3.3 with m = 10


def test_errors_are_held_against_the_bound():
    def cells(mean, **settings):
        return scores_of([run("CIFAR-10", "instance-smoothing", 8.0, mean, **settings)])

    assert verdict(BOUND, cells(90.0), metric="top1") == (HOLDS, CELLS)
    assert verdict(BOUND, cells(70.0), metric="top1") == (FAILS, CELLS)
    assert verdict(BOUND, cells(90.0, margin=20), metric="top1") == (FAILS, CELLS)  # the cell's own bound
    assert verdict(BOUND, cells(90.0, margin=1), metric="top1") == (FAILS, PRINTED)  # vacuous: not counted
    assert verdict(BOUND, cells(90.0)) == (FAILS, PRINTED)  # an area is no accuracy
    free = scores_of([run("CIFAR-10", "nonprivate", math.inf, 95.0)])
    assert verdict(BOUND, free, metric="top1") == (FAILS, CELLS)


def test_only_cells_alike_in_all_else_tell_the_best_setting():
    ours = as_the_paper_says()
    best = [dataclasses.replace(one, accuracy=Value(87.0, 0.05)) if "16" in one.entry else one for one in ours.runs]
    assert verdict(SETTINGS, scores_of(best)) == (FAILS, CELLS)
    other = [run("CIFAR-10", "instance-smoothing", 3.0, 86.0), run("CIFAR-10", "instance-smoothing", 8.0, 90.0)]
    other.append(run("CIFAR-10", "instance-smoothing", 3.0, 88.0, projected_dim=16, batch_size=64))
    found = FUNCTIONS[SETTINGS](evidence(scores_of(other)))
    assert found.verdict == OPEN and "2 of 3 cells have the paper's projected_dim 64, margin 10" in found.here


def test_data_sets_of_other_sizes_say_nothing_of_the_papers():
    assert verdict(DATA, as_the_paper_says()) == (HOLDS, CELLS)
    few = scores_of([run("CIFAR-10", "dp-sgd", 3.0, 80.0, n=4000)])
    found = FUNCTIONS[DATA](evidence(few))
    assert found.verdict == OPEN and "4,000 training records of 10 classes here, 50,000 of 10" in found.here


def test_what_the_projection_tells_grows_with_epochs_beyond_the_claim(monkeypatch):
    rows = published_rows(LEAKS, "anon_smoothing")
    assert verdict("independence") == (FAILS, MEASUREMENT)
    assert "AUC 0.514, ε ≥ 0.0 at epoch 1" in FUNCTIONS["independence"](evidence()).here
    for changed in ({"lower": "2.0"}, {"auc": "0.9"}):  # no more than is claimed; the same after any
        monkeypatch.setattr(
            anon_smoothing_experiments, "published_rows", lambda *_, changed=changed: [row | changed for row in rows]
        )
        assert verdict("independence") == (OPEN, "")


def test_what_cells_show_of_the_claims_that_they_cannot_decide():
    ours = evidence(as_the_paper_says())
    found = {claim: function(ours) for claim, function in FUNCTIONS.items()}
    assert "no privacy: auc 93.0 %" in found["measure"].here
    assert "best Effusion 93.5, worst Atelectasis 86.5" in found["compact-classes"].here
    assert "0 of 2 for, 0 ties, 2 against" in found[HIGHER].here
