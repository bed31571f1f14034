"""Expected calibration error, by a slow computation from its definition."""

import numpy as np
import pytest

from dpstudy.evaluation.metrics.ece import METRIC


def slow(p, happened, weights):
    """Over 15 bins of equal width, by loops."""
    total = 0.0
    for low in range(15):
        inside = [i for i, value in enumerate(p) if min(14, int(value * 15)) == low]
        total += abs(sum(weights[i] * (p[i] - happened[i]) for i in inside))
    return 100 * total / sum(weights)


def test_it_is_that_of_the_definition():
    random = np.random.default_rng(0)
    logits, weights = random.normal(0, 2, (300, 4)), random.integers(0, 3, (2, 300)).astype(float)
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = random.integers(4, size=300)
    found = METRIC.weighted(logits, labels, list("abcd"), weights)
    assert found == pytest.approx([slow(p.max(1), p.argmax(1) == labels, row) for row in weights])
    several = random.integers(2, size=(300, 4))
    found = METRIC.weighted(logits, several, list("abcd"), weights)
    q = 1 / (1 + np.exp(-logits))
    expected = [np.mean([slow(q[:, c], several[:, c], row) for c in range(4)]) for row in weights]
    assert found == pytest.approx(expected)


def test_of_probabilities_that_are_true_it_is_small_and_of_bold_ones_large():
    random = np.random.default_rng(1)
    logits = random.normal(0, 2, (20_000, 5))
    labels = (logits + random.gumbel(size=logits.shape)).argmax(1)
    assert METRIC.value(logits, labels, list("abcde")) < 1.5 < 8 < METRIC.value(2 * logits, labels, list("abcde"))
