"""Claims of de2022: each is judged by one function, whose verdict turns when the cells do."""

import dataclasses
import math

import pytest

from dpstudy.tables.claims.de2022_printed import CIFAR10, IMAGENET, PAPER, PRIOR, PRIOR_TUNED, SCATTERNET
from dpstudy.tables.claims.finding import CELLS, COMPUTED, FAILS, HOLDS, OPEN, PRINTED
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.judge import judges
from dpstudy.tables.claims.names import ROLES
from dpstudy.tables.claims.scores import Scores
from tests.scenarios.claims.agreeing_de2022 import (
    BATCHES,
    FUNCTIONS,
    PRINTED_SCORES,
    as_the_paper_says,
    evidence,
    turned_round,
    verdict,
)
from tests.scenarios.claims.agreeing_study import moved
from tests.scenarios.claims.left_over import found_in, judging

CLIPPING, OPTIMA = "clipping-norm", "settings-by-batch"
RULES, COPIES = "three-rules", "same-sensitivity"
NOISE, STEPS = "noise-at-the-optimum", "steps-with-epsilon"
DEEP_NOISE, DEEP_OPTIMA = "noise-at-the-optimum-of-wrn-40", "settings-by-batch-of-wrn-40"
BATCH, DEPTHS = (
    "larger-batches",
    "depth-and-budget",
)
HEADLINE, PLAIN = "headline", "plain-descent"
TURNING = [
    "new-best",
    "best-from-three",
    "scatternet-first",
    "best-depth",
    "imagenet",
    "without-privacy",
    "ablation",
    "more-copies",
    "averaging",
    "deeper-is-worse",
    "all-layers-first",
    "over-earlier",
    "better-pretraining",
    "from-cifar100",
    "larger-models",
    "stronger-start",
    "along-epsilon",
    "depth-and-mode",
    "more-images",
    "places",
    "larger-images",
    BATCH,
    NOISE,
    DEEP_NOISE,
    DEPTHS,
    HEADLINE,
    PLAIN,
    RULES,
    STEPS,
]


def test_every_claim_has_one_judge_and_no_function_is_left_over():
    assert judging(PAPER) == found_in(PAPER) and len(judges(PAPER)) == 49
    assert len(ROLES[PAPER]) == len(set(ROLES[PAPER]))


def test_the_printed_numbers_take_their_roles():
    def printed(dataset, role, epsilon):
        return PRINTED_SCORES.get(dataset, role, epsilon)

    assert printed(CIFAR10, "wrn-40-4", 8.0) == Value(81.4, 0.2 / math.sqrt(5))
    assert printed(CIFAR10, PRIOR, 7.5).mean == 71.7 and printed(CIFAR10, SCATTERNET, 3.0).mean == 69.3
    assert printed(CIFAR10, PRIOR_TUNED, 2.0).mean == 94.8  # the better of two
    assert printed(CIFAR10, "all-layers", 1.0).mean == 94.8 and printed(CIFAR10, "classifier", 1.0).mean == 93.1
    assert printed(CIFAR10, "all-layers-smaller", 8.0).mean == 95.6
    assert printed(CIFAR10, "all-layers-cifar100", 0.5).mean == 76.7
    assert printed(IMAGENET, "nfnet", 0.5).mean == 83.8  # top-1, not top-5
    assert printed(IMAGENET, "nonprivate-nfnet", math.inf).mean == 88.5 and printed(IMAGENET, PRIOR, 13.2).mean == 6.9
    assert printed("Places-365", "nonprivate-places-classifier", math.inf).mean == 54.5
    assert [one.accuracy.mean for one in PRINTED_SCORES.of_role("ablation")] == [50.8, 66.3, 70.0, 71.2, 78.4, 79.7]


@pytest.mark.parametrize("claim", TURNING)
def test_cells_decide_and_turned_round_they_contradict(claim):
    ours = as_the_paper_says()
    assert verdict(claim, ours) == (HOLDS, CELLS)
    assert verdict(claim, turned_round(ours)) == (FAILS, CELLS)


@pytest.mark.parametrize("claim", [claim for claim in TURNING if claim != RULES])
def test_a_single_seed_decides_nothing(claim):
    found = FUNCTIONS[claim](evidence(as_the_paper_says(error=None)))
    assert found.verdict == OPEN or found.decided_by == PRINTED, found


@pytest.mark.parametrize("claim", TURNING)
def test_without_the_cells_of_its_roles_a_claim_says_what_is_lacking(claim):
    ours = as_the_paper_says(wanted=lambda one: one.role == "other")
    found = FUNCTIONS[claim](evidence(ours))
    assert found.decided_by in ("", PRINTED) and "The study has no" in found.here


def test_the_better_of_two_networks_takes_both():
    ours = as_the_paper_says(wanted=lambda one: one.role != "wrn-40-4")
    found = FUNCTIONS["best-from-three"](evidence(ours))
    assert found.decided_by in ("", PRINTED) and "The study has no" in found.here


def where(scores, by, **named):
    """The same with the accuracies of some runs moved."""
    return moved(scores, lambda one: all(getattr(one, k) == v for k, v in named.items()), lambda mean: mean + by)


@pytest.mark.parametrize(
    ("claim", "named", "by"),
    [
        (CLIPPING, {"role": "clipping", "entry": "C = 0.1, 2.0"}, -2.0),
        (CLIPPING, {"role": "clipping", "entry": "C = 0.5, 1.0"}, 2.0),
        ("places", {"role": "nonprivate-places-all"}, 2.0),
        ("ablation", {"role": "ablation", "entry": "3"}, -2.0),
        ("all-layers-first", {"dataset": "CIFAR-100", "role": "all-layers", "epsilon": 1.0}, -2.0),
        ("best-depth", {"role": "wrn-40-4", "epsilon": 1.0}, 2.0),
        ("from-cifar100", {"role": "all-layers-cifar100", "epsilon": 8.0}, 4.0),
        (HEADLINE, {"role": "nonprivate-nfnet"}, 1.0),
        (STEPS, {"role": "iterations", "epsilon": 4.0, "entry": "T = 250"}, 8.0),
        (PLAIN, {"role": "decay"}, 1.0),
        (NOISE, {"role": "noise", "entry": "wrn-16-4 6.0"}, 4.0),
        (DEPTHS, {"role": "depths", "entry": "wrn-40-4, 16"}, -4.0),
    ],
)
def test_a_verdict_turns_when_one_role_does(claim, named, by):
    ours = as_the_paper_says()
    assert verdict(claim, ours) == (HOLDS, CELLS)
    assert verdict(claim, where(ours, by, **named)) == (FAILS, CELLS)


def test_figures_of_the_deeper_network_have_their_own_cells():
    shallow = as_the_paper_says(wanted=lambda one: not one.entry.startswith("wrn-40-4"))
    assert verdict(NOISE, shallow) == verdict(OPTIMA, shallow) == (HOLDS, CELLS)
    assert verdict(DEEP_NOISE, shallow) == verdict(DEEP_OPTIMA, shallow) == (OPEN, "")
    assert verdict(DEEP_OPTIMA, as_the_paper_says()) == (HOLDS, CELLS)


def changed_settings(role, change):
    """The agreeing study with the settings of a role changed."""
    ours = as_the_paper_says()
    runs = []
    for one in ours.runs:
        if one.role == role:
            metrics = one.metrics | {"hyperparameters": one.metrics["hyperparameters"] | change(one)}
            one = dataclasses.replace(one, metrics=metrics)
        runs.append(one)
    return Scores(ours.values, runs)


SIZES = [batch for batch, _, _ in BATCHES]


@pytest.mark.parametrize(
    "name_and_values",
    [
        ("steps", [2000] * 5),  # never falling
        ("steps", [8000, 4000, 2000, 1000, 500]),  # never constant
        ("learning_rate_applied", [1.0] * 5),
        ("learning_rate_applied", [0.25, 0.5, 1.0, 2.0, 4.0]),
    ],
    ids=lambda found: f"{found[0]} {found[1]}",
)
def test_how_the_best_settings_go_with_the_batch(name_and_values):
    name, values = name_and_values
    by_size = dict(zip(SIZES, values, strict=True))
    ours = changed_settings("batches", lambda one: {name: by_size[one.metrics["hyperparameters"]["batch_size"]]})
    assert verdict(OPTIMA, as_the_paper_says()) == (HOLDS, CELLS)
    assert verdict(OPTIMA, ours) == (FAILS, CELLS)


def test_only_tuned_batches_tell_what_is_best():
    ours = as_the_paper_says()
    fixed = [dataclasses.replace(one, metrics=one.metrics | {"tuned_on": "published"}) for one in ours.runs]
    assert verdict(OPTIMA, Scores(ours.values, fixed)) == (OPEN, "")
    assert verdict(RULES, Scores(ours.values, fixed)) == (OPEN, "")


@pytest.mark.parametrize(
    ("role", "claims"), [("batches", (OPTIMA, "larger-batches", RULES)), ("noise", ("noise-at-the-optimum", RULES))]
)
def test_searches_that_end_at_an_end_tell_nothing_of_what_is_best(role, claims):
    """Small batches that were given too few steps would lag for that alone, and much noise at too large a rate."""
    ours = as_the_paper_says()
    first = next(one for one in ours.runs if one.role == role)
    ended = dataclasses.replace(first, metrics=first.metrics | {"tuning": {"at_end": ["steps"]}})
    runs = Scores(ours.values, [ended if one is first else one for one in ours.runs])
    for claim in claims:
        assert verdict(claim, ours) == (HOLDS, CELLS)
        assert verdict(claim, runs) == (OPEN, "")
        assert f"at an end of their space ({first.entry}: steps)" in FUNCTIONS[claim](evidence(runs)).here


def test_of_several_cells_at_one_batch_size_the_best_counts():
    ours = as_the_paper_says()
    first = next(one for one in ours.runs if one.role == "batches")
    worse = dataclasses.replace(first, accuracy=dataclasses.replace(first.accuracy, mean=1.0))
    assert verdict(OPTIMA, Scores(ours.values, [*ours.runs, worse])) == (HOLDS, CELLS)


def test_the_noise_of_cells_must_not_depend_on_the_copies():
    found = FUNCTIONS[COPIES](evidence(as_the_paper_says()))
    assert (found.verdict, found.decided_by) == (HOLDS, COMPUTED) and found.here.startswith("1 of 1 groups")
    more = changed_settings("multiplicity", lambda one: {"noise_multiplier": 4.0} if one.entry == "K = 16" else {})
    assert verdict(COPIES, more) == (FAILS, CELLS)


@pytest.mark.parametrize(
    "claim",
    [
        "without-privacy",
        "imagenet",
        "along-epsilon",
        "depth-and-mode",
        HEADLINE,
    ],
)
def test_printed_levels_are_of_as_many_records(claim):
    ours = as_the_paper_says()
    few = Scores(ours.values, [dataclasses.replace(one, n=4000) for one in ours.runs])
    assert verdict(claim, ours) == (HOLDS, CELLS) and verdict(claim, few) == (OPEN, "")


def test_clipping_above_one_and_updates_that_are_not_normalised_are_left_out():
    assert "4 of 4 for" in FUNCTIONS[CLIPPING](evidence(as_the_paper_says())).here
    plain = changed_settings("clipping", lambda one: {"normalised": False})
    assert verdict(CLIPPING, plain) == (OPEN, "")


def test_what_cells_say_of_their_choice_is_counted():
    found = FUNCTIONS["tuning-is-free"](evidence(as_the_paper_says()))
    count = sum(not math.isinf(one.epsilon) for one in as_the_paper_says().runs)
    assert found.here.startswith(f"{count} of {count} private cells say")
