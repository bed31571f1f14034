"""Curves are measured on parts of public records, and each point is what `dpstudy.fit` gives."""

import copy

import numpy as np
import pytest

from dpstudy import fit, predict
from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.features.shards import FeatureTable
from dpstudy.forecast import measure
from dpstudy.forecast.curves import CLASSES, ONE, SEVERAL
from tests.workflow.clinic import CONFIG


def table(n, seed):
    random = np.random.default_rng(seed)
    labels = random.integers(4, size=n)
    features = (np.eye(4, 6)[labels] + 0.5 * random.normal(size=(n, 6))).astype(np.float32)
    return FeatureTable(np.arange(n).astype(str), features, labels, shape=(6,))


def test_tasks_are_of_classes_of_one_against_the_rest_and_of_findings():
    train, test = (np.random.default_rng(seed).integers(10, size=5000) for seed in (0, 1))
    found = list(measure.tasks(train, test, 10, np.random.default_rng(2)))
    assert [(task.kind, task.classes, task.metric) for task in found] == [
        (CLASSES, 10, "top1"), (ONE, 2, "auc"), (ONE, 2, "auc"), (SEVERAL, 8, "auc")
    ]  # fmt: skip
    assert [task.prevalence for task in found[:3]] == pytest.approx([0.1, 0.1, 0.5], abs=0.03)
    several = found[3]
    assert several.train.shape == (5000, 8) and several.train.sum(1).max() == 2 and 0.05 < several.prevalence < 0.3


def test_a_point_is_the_mean_of_models_that_fit_gives(monkeypatch):
    monkeypatch.setattr(measure, "SIZES", (60, 200))
    monkeypatch.setattr(measure, "EPSILONS", (4.0,))
    monkeypatch.setattr(measure, "DRAWS", 2)
    train, test = table(250, 0), table(300, 1)
    points = list(measure.measured("made-up", "plain", train, test, 4))
    assert len(points) == 4 * 2 * 3 and {point.n for point in points} == {60, 200}
    (point,) = [p for p in points if (p.task, p.n, p.method) == (CLASSES, 60, "least_squares")]
    order, values = np.random.default_rng(1).permutation(300), []
    for draw in range(2):
        rows = np.random.default_rng([3, draw]).permutation(250)[:60]
        model = fit(
            "least_squares", train.features[rows], train.labels[rows], classes=4, epsilon=4.0, delta=1e-5, seed=draw
        ).model
        values.append(100 * np.mean(predict(model, test.features[order]).argmax(1) == test.labels[order]))
    assert point.value == pytest.approx(np.mean(values)) and point.chance == 25 and point.best >= 50


def test_records_of_ones_own_make_no_curve(tmp_path):
    with pytest.raises(StudyError, match=r"datasets\.clinic: curves are published, and its records are your own"):
        measure.write_curves(load(copy.deepcopy(CONFIG)), str(tmp_path))
