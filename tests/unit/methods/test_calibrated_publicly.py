"""Slope and offsets of public test records, which spend nothing."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from dpstudy import methods
from dpstudy.core.errors import StudyError
from dpstudy.evaluation.metrics import metric_of
from dpstudy.features.shards import FeatureTable
from dpstudy.methods.calibrated_publicly import PubliclyCalibrated, for_calibration, likeliest
from dpstudy.methods.problem import Problem
from dpstudy.models.operating_points import counts_of
from dpstudy.models.probabilities import calibration_of
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

CLASSES = 3


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.choice(CLASSES, n, p=[0.6, 0.3, 0.1]).astype(np.int32)
    return (np.eye(CLASSES)[labels] + 0.8 * rng.standard_normal((n, CLASSES))).astype(np.float32), labels


def table(n, seed, subjects=None):
    features, labels = drawn(n, seed)
    return FeatureTable(np.array([f"r{row}" for row in range(n)]), features, labels, subjects)


@pytest.mark.parametrize("several", [False, True])
def test_the_truth_is_found_again(several):
    rng, slope, offsets = np.random.default_rng(0), 2.5, np.array([0.5, -1.0, 0.2])
    scores = rng.standard_normal((40_000, 3))
    logits = slope * scores + offsets
    if several:
        y = (rng.random(logits.shape) < expit(logits)).astype(float)
    else:
        y = np.array([rng.multinomial(1, p) for p in softmax(logits, 1)], float)
    found, moved = likeliest(scores, y, several)
    assert found == pytest.approx(slope, rel=0.03)
    if not several:  # what all have in common says nothing
        moved, offsets = moved - moved.mean(), offsets - offsets.mean()
    np.testing.assert_allclose(moved, offsets, atol=0.05)
    assert likeliest(1000 * scores, y, several)[0] == pytest.approx(found / 1000, rel=1e-3)


def test_about_half_of_the_names_are_for_it_and_a_persons_records_stay_together():
    ids = np.array([f"r{row}" for row in range(2000)])
    chosen = for_calibration(ids, None)
    assert 900 < chosen.sum() < 1100 and np.array_equal(for_calibration(ids[::-1], None), chosen[::-1])
    persons = np.array([f"p{row // 4}" for row in range(2000)])
    kept = for_calibration(ids, persons).reshape(-1, 4)
    assert np.array_equal(kept.any(1), kept.all(1)) and 200 < kept.all(1).sum() < 300


def trained(test, thresholds=False):
    method = PubliclyCalibrated(methods.load("least_squares"), lambda: test, thresholds)
    problem = Problem(2000, (CLASSES,), CLASSES, Budget("1", 1e-5), several=False)
    parameters = methods.parameters("least_squares", {})
    plan = method.plan(parameters, problem)
    data = method.prepare([drawn(2000, 1)], parameters, problem)
    return method.fit(data, parameters, problem, plan, NoiseSource("seeded", "public")).model, plan


def test_probabilities_are_right_on_records_that_told_nothing_and_nothing_is_spent():
    test, other = table(6000, 2), drawn(6000, 3)
    model, plan = trained(test)
    plain = methods.load("least_squares").plan(
        methods.parameters("least_squares", {}), Problem(2000, (CLASSES,), CLASSES, Budget("1", 1e-5), several=False)
    )
    assert plan.events == plain.events
    ece, names = metric_of("ece"), [str(label) for label in range(CLASSES)]
    calibrated = ece.value(model.scores(other[0]), other[1], names)
    told = calibration_of(model)
    before = (model.scores(other[0]) - np.array(told["offsets"])) / told["slope"]
    assert calibrated < 3 < 10 < ece.value(before, other[1], names)
    assert told["noise"] == 0 and told["shares"] == pytest.approx([0.6, 0.3, 0.1], abs=0.03)


def test_only_its_half_of_the_test_records_goes_in():
    """The others, which scores are of, may have any labels."""
    test = table(400, 2)
    wrong = np.where(for_calibration(test.ids, None), test.labels, (test.labels + 1) % CLASSES).astype(np.int32)
    same = FeatureTable(test.ids, test.features, wrong)
    assert calibration_of(trained(test)[0]) == calibration_of(trained(same)[0])


def test_thresholds_are_of_it_too():
    test = table(400, 2)
    counts, noise = counts_of(trained(test, thresholds=True)[0].metadata, CLASSES)
    own = for_calibration(test.ids, None)
    assert noise == 0 and counts.sum() == CLASSES * own.sum()
    assert counts[1].sum(1).tolist() == [(test.labels[own] == label).sum() for label in range(CLASSES)]


def test_too_few_are_refused():
    """Before anything is fitted."""
    method = PubliclyCalibrated(methods.load("least_squares"), lambda: table(12, 2), False)
    with pytest.raises(StudyError, match="calibration: test: . of the test records are for it, and it takes 10"):
        method.plan(methods.parameters("least_squares", {}), Problem(90, (3,), 3, Budget("1", 1e-5), several=False))
