"""The regularised optimum against scikit-learn's, its choice of a ridge against the losses of all of them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dpstudy.methods import regularised
from dpstudy.methods.gradients import Head
from dpstudy.methods.records import Records
from dpstudy.methods.spectral import Preconditioner

CLASSES, DIM = 4, 60
SOFTMAX = Head("softmax", 0.0, np.inf)


@pytest.fixture(scope="module")
def rows():
    """Too few records for their dimension: without a ridge they are learned by heart."""
    rng = np.random.default_rng(3)
    labels = rng.integers(CLASSES, size=400)
    x = rng.standard_normal((400, DIM)) + 2.0 * np.eye(CLASSES, DIM)[labels]
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32), labels


def preconditioner(x, head, ridge=1e-3):
    return Preconditioner(regularised.curvature(head, CLASSES) * x.T @ x / len(x), ridge, True)


def trained(batches, head=SOFTMAX, steps=300, positives=1, x=None):
    records = Records.read(batches, CLASSES, positives)
    x = np.concatenate([x for x, _ in batches]) if x is None else x
    return regularised.train(records, head, preconditioner(x, head), steps)


def optimum(x, labels, ridge):
    """scikit-learn's, whose sum of losses has a penalty of 1/C."""
    return LogisticRegression(C=1 / (len(x) * ridge), fit_intercept=False, tol=1e-10, max_iter=10_000).fit(x, labels)


def test_it_is_the_optimum_of_the_ridge_that_the_held_out_records_choose(rows):
    x, labels = rows
    weights, ridge = trained([rows])
    out = np.random.default_rng(0).random(len(x)) < regularised.HELD_OUT
    losses = {}
    for one in regularised.RIDGES:
        model = optimum(x[~out], labels[~out], one)
        right = model.predict_proba(x[out])[np.arange(out.sum()), labels[out]]
        losses[one] = -np.log(np.maximum(right, 1e-30)).mean()
    assert ridge == min(losses, key=losses.get) and 1e-8 < ridge < 0.1
    expected = optimum(x, labels, ridge).coef_
    expected -= expected.mean(0)
    assert weights - weights.mean(0) == pytest.approx(expected, abs=1e-3 * float(np.abs(expected).max()))


def test_blocks_and_order_of_reading_change_nothing_but_rounding(rows, monkeypatch):
    x, labels = rows
    whole, ridge = trained([rows], steps=50)
    monkeypatch.setattr(Records, "_rows", lambda self: 7)
    parts, again = trained([(x[:130], labels[:130]), (x[130:], labels[130:])], steps=50)
    assert again == ridge and parts == pytest.approx(whole, rel=1e-3, abs=1e-4 * float(np.abs(whole).max()))


@pytest.mark.parametrize("mean", [True, False])
def test_several_labels_are_as_many_regressions_apart(rows, mean):
    """Each class has scikit-learn's optimum; of a mean over the classes the ridge weighs so many times as much."""
    x, labels = rows
    several = np.eye(CLASSES, dtype=np.uint8)[labels]
    several[:, 0] |= x[:, 5] > 0
    head = Head("sigmoid", 0.0, np.inf, mean=mean)
    weights, ridge = trained([(x, several)], head, positives=CLASSES)
    for label in range(CLASSES):
        expected = optimum(x, several[:, label], ridge * (CLASSES if mean else 1)).coef_[0]
        assert weights[label] == pytest.approx(expected, abs=2e-3 * float(np.abs(expected).max()))


def test_a_broken_record_takes_no_part(rows):
    x, labels = rows
    broken = x.copy()
    broken[3] = np.nan
    weights, _ = trained([(broken, labels)], steps=50, x=x)
    assert np.isfinite(weights).all() and np.abs(weights).max() > 1


def test_losses_are_those_of_the_scores(rows):
    x, labels = rows
    records = Records.read([rows], CLASSES, 1)
    weights = np.random.default_rng(1).standard_normal((CLASSES, DIM)).astype(np.float32)
    everything = np.ones(len(x), bool)
    scores = x.astype(float) @ weights.T.astype(float)
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    expected = -np.log(probabilities[np.arange(len(x)), labels]).mean()
    assert regularised._one_pass(records, SOFTMAX, weights, everything)[1] == pytest.approx(expected, rel=1e-5)
    likely = 1 / (1 + np.exp(-scores))
    hot = np.eye(CLASSES)[labels]
    expected = -(hot * np.log(likely) + (1 - hot) * np.log(1 - likely)).sum(1).mean()
    for mean in (True, False):
        found = regularised._one_pass(records, Head("sigmoid", 0.0, np.inf, mean=mean), weights, everything)[1]
        assert found == pytest.approx(expected, rel=1e-4)
