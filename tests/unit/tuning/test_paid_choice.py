"""Hyper-parameters by the exponential mechanism: what is released, what it is worth, and that it follows scores."""

import math
import secrets
from dataclasses import replace

import numpy as np
import pytest

from dpstudy import methods
from dpstudy.core.errors import StudyError
from dpstudy.methods.sufficient_statistics import accumulate
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.gaussian import composed_mu, mu_of
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.noise import NoiseSource
from dpstudy.tuning import paid_repeats
from tests.unit.tuning.conftest import (
    DELTA,
    FIRST_ORDER,
    LEARNING,
    LS,
    RIDGES,
    ROWS,
    fitted,
    inputs,
    paying,
    set_up,
)


def test_a_choice_spends_the_whole_budget_on_either_part(toy_features, rows, tmp_path):
    request = paying(LS, RIDGES, pay="choice", sampler="grid")
    tuning, problem, plan = set_up(request, inputs(toy_features, rows, tmp_path))
    assert problem.n == ROWS["train"] + ROWS["validation"]
    released, choice = plan.events[:-1], plan.events[-1]
    assert {event.part for event in released} == {"train"} and choice.part == "validation"
    assert composed_mu(released) == pytest.approx(mu_of(1.0, DELTA), rel=1e-6)
    assert choice.noise_multiplier == pytest.approx(1.0) and choice.sensitivity == 1
    assert 0.999 < certify(plan.events, DELTA).epsilon <= 1
    assert tuning._problem.n == ROWS["train"]
    ledger = build_ledger(plan.events, problem.budget, n=problem.n, unit="record", noise="secure")
    assert ledger["guarantee"] == "proved" and ledger["accountant"] == "exact Gaussian DP; pure DP"


def test_the_chosen_model_is_solved_from_the_one_release(toy_features, rows, tmp_path):
    request = paying(LS, RIDGES, pay="choice", sampler="grid")
    given = inputs(toy_features, rows, tmp_path)
    tuning, problem, plan, fit, source = fitted(request, given)
    (chosen,) = tuning.chosen
    method = methods.load("least_squares")
    parameters = methods.parameters("least_squares", LS_FIXED | chosen)
    data = accumulate([rows["train"]], 3, 1.0)
    once = method.plan(parameters, tuning._problem)
    released = method.release(data, parameters, once, NoiseSource("seeded", "cell", 0))
    np.testing.assert_array_equal(fit.model.weights, method.solve(released, parameters, once).weights)
    assert dict(source.drawn) == {"gram": 1, "targets": 1, "choice": 1}


LS_FIXED = {"clipping_norm": 1.0}


def test_choices_follow_the_scores_as_sharply_as_they_are_paid_for(toy_features, rows, tmp_path, monkeypatch):
    """Candidates that are right on 10, 11 and 12 records: the chances at epsilon 1 are those of the mechanism."""
    space = {"ridge": {"choices": [1.0, 2.0, 3.0]}}
    tuning, problem, plan = set_up(
        paying(LS, space, pay="choice", sampler="grid"), inputs(toy_features, rows, tmp_path)
    )
    ridges = []
    solve = tuning.method.solve
    monkeypatch.setattr(
        tuning.method, "solve", lambda released, p, plan: ridges.append(p.ridge) or solve(released, p, plan)
    )
    monkeypatch.setattr(tuning, "score", lambda model, problem: 9 + ridges[-1])
    monkeypatch.setattr(tuning.method, "release", lambda statistics, p, plan, source: FREE)
    FREE = {"gram": np.eye(6), "targets": np.ones((3, 6))}
    key = secrets.randbits(60)
    for seed in range(3000):
        tuning.fit(None, None, problem, plan, NoiseSource("seeded", key, seed))
    counts = np.bincount([int(chosen["ridge"]) - 1 for chosen in tuning.chosen]) / 3000
    expected = np.exp([0.0, 1.0, 2.0]) / np.exp([0.0, 1.0, 2.0]).sum()
    assert np.abs(counts - expected).max() < 0.05  # six standard deviations; at half of epsilon it is 0.16


def test_retraining_is_paid_for_by_both_parts(toy_features, rows, tmp_path):
    request = paying(LS, RIDGES, pay="choice", sampler="grid", retrain=True, share=0.3)
    given = inputs(toy_features, rows, tmp_path, ("train", "validation"))
    tuning, problem, plan, fit, source = fitted(request, given)
    first, second, choice = plan.events[:2], plan.events[2:4], plan.events[4]
    assert [event.part for event in plan.events] == ["train", "train", None, None, "validation"]
    mu = mu_of(1.0, DELTA)
    assert composed_mu(first) == pytest.approx(mu * math.sqrt(0.3), rel=1e-6)
    assert composed_mu(second) == pytest.approx(mu * math.sqrt(0.7), rel=1e-6)
    assert 0.999 < certify((*second, choice), DELTA).epsilon <= 1
    assert 0.999 < certify(plan.events, DELTA).epsilon <= 1
    assert dict(source.drawn) == {"gram": 2, "targets": 2, "choice": 1}
    # The model is of all records: with next to no noise it is the ridge solution on both splits.
    free = paying(LS, RIDGES, "inf", pay="choice", sampler="grid", retrain=True)
    tuning, *_, fit, _ = fitted(free, given)
    both = accumulate([rows["train"], rows["validation"]], 3, 1.0)
    targets = both.targets - both.targets.mean(0)
    weights = targets @ np.linalg.inv(both.gram + tuning.chosen[0]["ridge"] * np.eye(6))
    np.testing.assert_allclose(fit.model.weights, weights, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("averaged", [False, True])
def test_a_person_with_several_records_changes_scores_by_as_many(averaged, toy_features, rows, tmp_path, monkeypatch):
    """Where what is learned of them is averaged too: each is scored."""
    request = paying(LS, RIDGES, pay="choice", sampler="grid")
    given = inputs(toy_features, rows, tmp_path)
    tuning, problem, _ = set_up(request, given)
    persons = replace(problem, unit_records=4, averaged=averaged)
    plan = tuning.plan(None, persons)
    assert plan.events[-1].sensitivity == 4 and plan.events[-1].noise_multiplier == pytest.approx(1.0)
    asked = []
    source = NoiseSource("seeded", "cell")
    monkeypatch.setattr(source, "chosen", lambda name, scores, epsilon: asked.append(epsilon) or 0)
    tuning.fit(None, None, persons, plan, source)
    assert asked == [pytest.approx(0.25)]


def test_settings_of_another_release_are_refused(toy_features, rows, tmp_path):
    request = paying(LS, {"gram_share": {"choices": [0.1, 0.5]}}, pay="choice", sampler="grid")
    with pytest.raises(StudyError, match="settings of one noisy release, and {'gram_share': 0.5} needs another"):
        set_up(request, inputs(toy_features, rows, tmp_path))


@pytest.mark.parametrize("pay", ["choice", "repeats"])
def test_a_record_of_either_part_touches_what_is_charged_to_that_part_alone(
    pay, toy_features, rows, tmp_path, monkeypatch
):
    """Whatever splits a cell learns from in the end, trials train on the first one."""
    request = paying(LS, RIDGES, pay="choice", sampler="grid") if pay == "choice" else repeats()
    released, queries = NoiseSource.released, []

    def noted(self, name, query, *arguments, **more):
        queries.append((name, None if name == paid_repeats.SCORE else query.tobytes()))
        return released(self, name, query, *arguments, **more)

    monkeypatch.setattr(NoiseSource, "released", noted)
    monkeypatch.setattr(NoiseSource, "chosen", lambda *arguments: 1)
    found = []
    for splits in (("train",), ("train", "validation")):
        queries.clear()
        given = inputs(toy_features, rows, tmp_path, splits)
        given = given if pay == "choice" else replace(given, statistics=())
        tuning, problem, plan = set_up(request, given)
        tuning.fit(None, None, problem, plan, NoiseSource("seeded", "cell"))
        found.append(list(queries))
    assert found[0] and found[0] == found[1]


def repeats(epsilon="1", options=FIRST_ORDER, space=LEARNING, **tuning):
    return paying(options, space, epsilon, **{"pay": "repeats", "sampler": "random", "trials": 4} | tuning)


@pytest.mark.parametrize("noise", ["seeded", "secure"])
def test_a_record_adds_to_a_score_what_depends_on_it_alone(toy_features, rows, tmp_path, noise):
    """Where noise is secure; else records are scored together, which takes less time."""
    seen = []

    class Model:
        def scores(self, features):
            seen.append(len(features))
            return np.eye(3)[np.zeros(len(features), int)]

    request = replace(paying(LS, RIDGES, pay="choice", sampler="grid"), noise=noise)
    tuning, problem, _ = set_up(request, inputs(toy_features, rows, tmp_path))
    labels = np.concatenate([labels for _, labels in [rows["validation"]]])
    assert tuning.score(Model(), tuning._problem) == np.count_nonzero(labels == 0)
    assert set(seen) == ({1} if noise == "secure" else {ROWS["validation"]})
