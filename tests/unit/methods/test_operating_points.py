import math

import numpy as np
import pytest

import dpstudy
from dpstudy import methods
from dpstudy.core.errors import StudyError
from dpstudy.methods import least_squares
from dpstudy.methods.calibrated import Calibrated
from dpstudy.methods.operating_points import NAME, counted, event, share_of
from dpstudy.methods.problem import check_plan
from dpstudy.models.operating_points import EDGES, counts_of, thresholds
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.noise import NoiseSource
from tests.unit.methods.test_calibrated import drawn, problem_of


@pytest.mark.parametrize(
    ("classes", "positives", "several"), [(2, 1, None), (10, 1, None), (1, 1, True), (14, 3, True)]
)
@pytest.mark.parametrize("records", [1, 4])
def test_a_record_is_in_one_bin_for_each_class(classes, positives, several, records):
    problem = problem_of(classes, positives=positives, several=several, unit_records=records)
    scores, labels = drawn(problem, 400)
    alone = [counted(scores[i : i + 1], labels[i : i + 1], np.ones(1), problem) for i in range(400)]
    lengths = [np.linalg.norm(each) for each in alone]
    assert set(np.round(lengths, 9)) == {round(math.sqrt(classes), 9)}
    assert event(problem, 1.0).sensitivity == pytest.approx(records * math.sqrt(classes))
    np.testing.assert_array_equal(counted(scores, labels, np.ones(400), problem), sum(alone))
    weights = np.random.default_rng(0).uniform(0.1, 1, 400)
    whole = counted(scores, labels, weights, problem)
    np.testing.assert_allclose(whole, sum(w * each for w, each in zip(weights, alone, strict=True)), atol=1e-3)


def test_the_right_record_is_in_the_right_bin():
    problem = problem_of(2, positives=2, several=True)
    odds = np.array([[-7.0, 0.1], [2.6, 7.0]], np.float32)
    found = counted(odds, np.array([[0, 1], [1, 0]]), np.ones(2), problem)
    assert found.sum() == 4 and found[0, 0, 0] == 1 and found[0, 1, -1] == 1
    assert found[1, 1, np.digitize(0.1, EDGES)] == 1 and found[1, 0, np.digitize(2.6, EDGES)] == 1
    one = problem_of(3)
    scores = np.log(np.array([[0.7, 0.2, 0.1]], np.float32))
    places = [np.digitize(math.log(p / (1 - p)), EDGES) for p in (0.7, 0.2, 0.1)]
    found = counted(scores, np.array([1]), np.ones(1), one)
    assert [found[int(j == 1), j, place] for j, place in enumerate(places)] == [1, 1, 1]


@pytest.mark.parametrize("epsilon", ["0.5", "2", "8"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("least_squares", {}),
        ("first_order", {"learning_rate": 1.0, "clipping_norm": 1.0, "steps": 20, "batch_size": 400}),
    ],
)
def test_the_budget_pays_for_all_three(name, options, epsilon):
    problem = problem_of(4, n=20_000, epsilon=epsilon)
    stands_for = Calibrated(methods.load(name), "auto", lambda: [], thresholds=True)
    parameters = methods.parameters(name, options)
    plan = stands_for.plan(parameters, problem)
    check_plan(plan, problem, name)
    assert [e.name for e in plan.events][-3:] == ["calibration_scale", "calibration", NAME]
    spent, target = certify(plan.events, problem.budget.delta).epsilon, float(epsilon)
    assert 0.98 * target < spent <= target * (1 + 1e-9)
    assert plan.noise[NAME] == pytest.approx(plan.events[-1].noise_multiplier * 2)


def test_what_is_drawn_is_what_is_planned_and_fresh():
    problem = problem_of(3, n=20_000, epsilon="2")
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=20_000)
    features = (np.eye(3)[labels] + rng.normal(0, 0.7, (20_000, 3))).astype(np.float32)
    stands_for = Calibrated(least_squares, "auto", lambda: [(features, labels)], thresholds=True)
    parameters = least_squares.Parameters()
    plan, found = stands_for.plan(parameters, problem), []
    for seed in range(40):
        source = NoiseSource("seeded", "points", seed)
        source.transcript = []
        data = stands_for.prepare([(features, labels)], parameters, problem)
        model = stands_for.fit(data, parameters, problem, plan, source).model
        counts, noise = counts_of(model.metadata, 3)
        assert noise == plan.noise[NAME] and source.drawn[NAME] == 1
        found.append(counts.sum((0, 2)))
    spread = np.std(found, axis=0) / (noise * math.sqrt(2 * (len(EDGES) + 1)))
    assert (0.7 < spread).all() and (spread < 1.35).all()
    assert np.mean(found, axis=0) == pytest.approx([20_000] * 3, rel=0.02)


def test_thresholds_of_arrays_leave_alone_and_find_what_they_say_on_other_records():
    rng = np.random.default_rng(5)

    def records(n):
        labels = (rng.random((n, 2)) < (0.3, 0.1)).astype(int)
        return np.c_[labels + rng.normal(0, 0.6, (n, 2)), np.ones(n)].astype(np.float32), labels

    train, test = records(40_000), records(40_000)
    given = {"epsilon": 2, "delta": 1e-6, "classes": 2, "positives": 2, "calibration": "auto"}
    model = dpstudy.fit("least_squares", *train, thresholds=True, **given).model
    p = 1 / (1 + np.exp(-dpstudy.predict(model, test[0])))
    for place, found in enumerate(thresholds(*counts_of(model.metadata, 2), 0.9)):
        told, there = p[:, place] >= found.probability, test[1][:, place] == 1
        assert np.mean(~told[~there]) == pytest.approx(0.9, abs=0.02)
        assert np.mean(told[there]) == pytest.approx(found.found[0], abs=0.05 + 3 * found.found[1])
    plain = dpstudy.fit("least_squares", *train, **given)
    assert counts_of(plain.model.metadata, 2) is None
    assert not np.allclose(plain.model.weights, model.weights), "less noise, and not the same"
    for wrong, words in (
        ({"calibration": None}, "give calibration too"),
        ({"thresholds": 1}, "must be True or False, or a share"),
        ({"thresholds": 0.4, "calibration": 0.6}, "take all of the budget"),
    ):
        with pytest.raises(StudyError, match=words):
            dpstudy.fit("least_squares", *train, **(given | {"thresholds": True} | wrong))


def test_few_units_have_none_and_many_classes_are_refused():
    assert share_of(problem_of(8, n=300, positives=2)) == 0
    few = Calibrated(least_squares, 0.5, lambda: [], thresholds=True).plan(
        least_squares.Parameters(), problem_of(8, n=300)
    )
    assert NAME not in {e.name for e in few.events}
    with pytest.raises(StudyError, match="thresholds: are for at most 50 classes, and there are 51"):
        event(problem_of(51), 1.0)


@pytest.mark.filterwarnings("error")
def test_a_record_of_any_length_says_nothing_in_a_warning():
    rng = np.random.default_rng(0)
    features, labels = (1e-3 * rng.normal(size=(3000, 3))).astype(np.float32), rng.integers(3, size=3000)
    features[7] = (3e38, 0, 0)
    given = {"epsilon": 8, "delta": 1e-5, "classes": 3, "calibration": 0.2, "thresholds": 0.2}
    for noise in ("seeded", "secure"):
        dpstudy.fit("least_squares", features, labels, noise=noise, **given)
