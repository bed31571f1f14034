"""Sensitivity at 90 % specificity, against the points of scikit-learn's ROC curve."""

import numpy as np
import pytest
from sklearn.metrics import roc_curve

from dpstudy.evaluation.metrics.sensitivity_90 import METRIC


@pytest.mark.parametrize("ties", [False, True])
def test_it_is_the_highest_point_of_the_curve_left_of_a_tenth(ties):
    random = np.random.default_rng(0)
    for n in (30, 400):
        labels = np.concatenate([[0, 1], random.integers(2, size=n - 2)])
        scores = random.normal(size=(n, 2)) + np.eye(2)[labels]
        scores = scores.round(0) if ties else scores
        weights = random.integers(1, 4, (1, n)).astype(float)
        wrong, found, _ = roc_curve(
            labels, scores[:, 1] - scores[:, 0], sample_weight=weights[0], drop_intermediate=False
        )
        assert METRIC.weighted(scores, labels, ["no", "yes"], weights) == pytest.approx(
            [100 * found[wrong <= 0.1 + 1e-12].max()]
        )


def test_where_nobody_or_everybody_bears_it_there_is_none():
    scores = np.random.default_rng(1).normal(size=(5, 1))
    for labels in (np.zeros((5, 1), int), np.ones((5, 1), int)):
        assert np.isnan(METRIC.weighted(scores, labels, ["a"], np.ones((1, 5)))).all()
