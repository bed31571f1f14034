"""Records with several labels: every method takes them, up to as many as are declared, or says what to change."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import dpstudy
from dpstudy.errors import StudyError

N, DIM, CLASSES, MOST = 1500, 8, 4, 2
STEPS = {"loss": "sigmoid", "learning_rate": 8.0, "clipping_norm": 0.5}
METHODS = {
    "least_squares": {},
    "least_squares, published": {"variant": "published", "clipping_norm": 3.0},
    "feature_covariance": {"loss": "sigmoid"},
    "feature_covariance, published": {
        "variant": "published", "steps": 10, "learning_rate": 1.0, "clipping_norm": 0.5, "gram_clipping_norm": 3.0,
        "bias": 0.0, "ridge": 0.01,
    },
    "newton, published": {"variant": "published", "steps": 3, "clipping_norm": 1.0, "ridge": 0.1},
    "first_order": STEPS | {"steps": 20},
    "first_order, softmax": STEPS | {"loss": "softmax", "steps": 20},  # logsumexp(Wx) - y.Wx: convex with any labels
    "iterated_sgd": {"epochs": 4, "batch_size": 300, "learning_rate": 1.0, "clipping_norm": 1.5},
    "kernel_mean": {"frequencies": 200},
    "kernel_mean, public W": {"frequencies": 200, "projection": "none"},
    "instance_smoothing": {"projected_dim": 8, "epochs": 5, "batch_size": 300},
}  # fmt: skip
SOFTMAX = {
    "feature_covariance": {"loss": "softmax"},
    "newton": {"variant": "softmax"},
}


def records(seed=0):
    """Each label shifts the records that bear it along an axis of its own; a record bears none to two."""
    rng = np.random.default_rng(seed)
    labels = np.zeros((N, CLASSES), np.uint8)
    for row in labels:
        row[rng.permutation(CLASSES)[: rng.integers(MOST + 1)]] = 1
    features = (rng.standard_normal((N, DIM)) + 4 * labels @ np.eye(CLASSES, DIM) - 1).astype(np.float32)
    return features, labels


def fitted(name, options, positives=MOST, epsilon=8):
    features, labels = records()
    return dpstudy.fit(
        name.split(",")[0], features, labels, epsilon=epsilon, delta=1e-4, positives=positives, **options
    )


@pytest.mark.parametrize("name", METHODS)
def test_every_label_is_told_from_its_absence(name):
    features, labels = records(seed=1)
    scores = fitted(name, METHODS[name]).model.scores(features)
    areas = [roc_auc_score(labels[:, label], scores[:, label]) for label in range(CLASSES)]
    assert min(areas) > 0.8, areas


@pytest.mark.parametrize("name", METHODS)
def test_more_labels_than_declared_are_refused(name):
    with pytest.raises(StudyError, match="positive"):
        fitted(name, METHODS[name], positives=1)


@pytest.mark.parametrize("name", SOFTMAX)
def test_a_loss_of_one_label_a_record_says_what_to_set(name):
    with pytest.raises(StudyError, match="one label a record"):
        fitted(name, SOFTMAX[name])
