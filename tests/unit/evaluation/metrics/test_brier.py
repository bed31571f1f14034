"""The Brier score, against scikit-learn's of two classes."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from dpstudy.evaluation.metrics.brier import METRIC


def test_of_two_classes_and_of_labels_it_is_scikit_learns():
    random = np.random.default_rng(0)
    logits, labels, weights = random.normal(size=(200, 2)), random.integers(2, size=200), random.random((1, 200))
    p = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
    found = METRIC.weighted(logits, labels, ["a", "b"], weights)
    assert found == pytest.approx([brier_score_loss(labels, p, sample_weight=weights[0])])
    several = random.integers(2, size=(200, 2))
    q = 1 / (1 + np.exp(-logits))
    assert METRIC.value(logits, several, ["a", "b"]) == pytest.approx(
        np.mean([brier_score_loss(several[:, label], q[:, label]) for label in range(2)])
    )


def test_of_more_classes_it_lies_between_0_and_1():
    logits, labels = 100 * np.eye(4), np.arange(4)
    assert METRIC.value(logits, labels, list("abcd")) == pytest.approx(0)
    assert METRIC.value(logits, np.roll(labels, 1), list("abcd")) == pytest.approx(1)
    assert METRIC.value(0 * logits, labels, list("abcd")) == pytest.approx((0.75**2 + 3 * 0.25**2) / 2)
