"""Records with several labels: every method takes them, up to as many as are declared, or says what to change."""

import functools
from contextlib import suppress

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import dpstudy
from dpstudy import methods
from dpstudy.auditing.tapes import EnoughError, Replay
from dpstudy.core.errors import StudyError
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

N, DIM, CLASSES, MOST = 1500, 8, 4, 2
STEPS = {"loss": "sigmoid", "learning_rate": 8.0, "clipping_norm": 0.5}
METHODS = {
    "least_squares": {},
    "least_squares, published": {"variant": "published", "clipping_norm": 3.0},
    "feature_covariance": {"loss": "sigmoid"},
    "feature_covariance, start": {"loss": "sigmoid", "start_share": 0.3, "mean_share": 0.1},
    "feature_covariance, published": {
        "variant": "published", "steps": 10, "learning_rate": 1.0, "clipping_norm": 0.5, "gram_clipping_norm": 3.0,
        "bias": 0.0, "ridge": 0.01,
    },
    "newton, published": {"variant": "published", "steps": 3, "clipping_norm": 1.0, "ridge": 0.1},
    "first_order": STEPS | {"steps": 20},
    "kernel_mean": {"frequencies": 200},
    "kernel_mean, public W": {"frequencies": 200, "projection": "none"},
    "instance_smoothing": {"projected_dim": 8, "epochs": 5, "batch_size": 300},
}  # fmt: skip
SOFTMAX = {
    "feature_covariance": {"loss": "softmax"},
    "newton": {"variant": "softmax"},
    "first_order": STEPS | {"loss": "softmax", "steps": 20},
    "network_dpsgd": STEPS | {"loss": "softmax", "steps": 20, "network": "scatter-28"},
    "iterated_sgd": {"epochs": 4, "batch_size": 300, "learning_rate": 1.0, "clipping_norm": 1.5},
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


@pytest.mark.parametrize("name", [*SOFTMAX, "kernel_mean"])
def test_records_with_one_label_or_none_are_of_several_labels_too(name):
    """Zeros and ones of which a record bears one at most: of a record that bears none, no class is the true one."""
    features, labels = records()
    labels[labels.sum(1) > 1] = 0
    with pytest.raises(StudyError, match="one label a record|without a label"):
        dpstudy.fit(name, features, labels, epsilon=8, delta=1e-4, **SOFTMAX.get(name, {}))


WITHOUT_PRIVACY = {  # options, and how far the mean area may lie below that of a logistic regression
    "least_squares": ({}, 0.01),
    "least_squares, published": ({"variant": "published", "clipping_norm": 8.0}, 0.01),
    "feature_covariance": ({"loss": "sigmoid"}, 0.03),  # a hundred steps
    "feature_covariance, start": ({"loss": "sigmoid", "start_share": 0.3, "mean_share": 0.1, "steps": 0}, 0.01),
    "feature_covariance, published": (
        {"variant": "published", "steps": 30, "learning_rate": 8.0, "clipping_norm": 2.0, "gram_clipping_norm": 8.0,
         "bias": 0.0, "ridge": 0.01}, 0.01),
    "newton, published": ({"variant": "published", "steps": 8, "clipping_norm": 8.0, "ridge": 0.01}, 0.01),
    "first_order": ({"loss": "sigmoid", "learning_rate": 8.0, "clipping_norm": 1.0, "steps": 200}, 0.02),
    "kernel_mean": ({"frequencies": 500}, 0.1),  # densities of points in as many dimensions as there are labels
    "kernel_mean, public W": ({"frequencies": 500, "projection": "none"}, 0.03),
    "instance_smoothing": ({"projected_dim": 8, "epochs": 8, "batch_size": 300}, 0.08),
}  # fmt: skip


@functools.cache
def findings(classes, seed):
    """(features, labels): findings of 8 to 50 % of records, the second beside the first, at most two a record, and a
    constant feature; whose logistic regression is what to compare with."""
    rng = np.random.default_rng(seed)
    labels = (rng.random((2000, classes)) < np.linspace(0.08, 0.5, classes)).astype(np.uint8)
    for row in labels:
        row[rng.permutation(np.flatnonzero(row))[2:]] = 0
    ways = np.random.default_rng(99).standard_normal((classes, 20)) / np.sqrt(20)
    ways[1] = 0.7 * (ways[0] + ways[1])
    features = np.column_stack([rng.standard_normal((2000, 20)) + 3 * labels @ ways, np.full(2000, 4.0)])
    return features.astype(np.float32), labels


def area(scores, labels):
    return np.mean([roc_auc_score(labels[:, label], scores[:, label]) for label in range(labels.shape[1])])


@functools.cache
def regression(classes):
    """The mean area of a logistic regression of each finding, without privacy."""
    (features, labels), (held_out, truth) = findings(classes, 0), findings(classes, 1)
    scores = [LogisticRegression(max_iter=1000).fit(features, own).decision_function(held_out) for own in labels.T]
    return area(np.column_stack(scores), truth)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", WITHOUT_PRIVACY)
def test_without_noise_every_method_is_near_a_logistic_regression(name, classes):
    """Two findings whose targets are centred are each other's opposite, however often both are there."""
    (features, labels), (held_out, truth) = findings(classes, 0), findings(classes, 1)
    options, below = WITHOUT_PRIVACY[name]
    method = name.split(",")[0]
    model = dpstudy.fit(method, features, labels, epsilon="inf", delta=1e-4, positives=2, **options).model
    assert area(model.scores(held_out), truth) > regression(classes) - below


def test_a_network_without_noise_is_near_it():
    rng, ways = np.random.default_rng(0), np.random.default_rng(99).standard_normal((2, 9))
    labels = (rng.random((800, 2)) < (0.2, 0.5)).astype(np.uint8)
    flat = rng.standard_normal((800, 9)) + labels @ ways
    features = np.repeat(flat[:, :, None], 49, 2).reshape(800, -1).astype(np.float32)
    options = {"network": "scatter-28", "loss": "sigmoid", "learning_rate": 0.1, "clipping_norm": 1.0, "steps": 40}
    asked = {"epsilon": "inf", "delta": 1e-4, "positives": 2, "shape": (9, 7, 7), "batch_size": 100}
    model = dpstudy.fit("network_dpsgd", features[:400], labels[:400], **asked, **options).model
    scores = [LogisticRegression().fit(flat[:400], own).decision_function(flat[400:]) for own in labels[:400].T]
    assert area(model.scores(features[400:]), labels[400:]) > area(np.column_stack(scores), labels[400:]) - 0.03


@pytest.mark.parametrize("classes", [2, 4])
def test_the_defaults_are_near_it_at_the_budget_of_eight_too(classes):
    (features, labels), (held_out, truth) = findings(classes, 0), findings(classes, 1)
    model = dpstudy.fit("least_squares", features, labels, epsilon=8, delta=1e-4, positives=2).model
    assert area(model.scores(held_out), truth) > regression(classes) - 0.01


RELEASED = [name for name in METHODS if not name.startswith(("iterated_sgd", "instance_smoothing"))]  # tested by theirs


def problem_of(name, options, positives):
    method = methods.load(name.split(",")[0])
    parameters = methods.parameters(name.split(",")[0], options)
    problem = Problem(N, (DIM,), CLASSES, Budget("8", 1e-4), positives)
    return method, parameters, problem, method.plan(parameters, problem)


@pytest.mark.parametrize("positives", [1, 2, 4])
@pytest.mark.parametrize("name", RELEASED)
def test_no_record_with_so_many_labels_changes_a_release_by_more_than_is_charged(name, positives):
    """Along the path of one run, with and without a record that is as long as it may be and bears so many labels."""
    method, parameters, problem, plan = problem_of(name, METHODS[name], positives)
    features, labels = records()
    labels[labels.sum(1) > positives] = 0
    rng, largest = np.random.default_rng(7), {}
    for length in (1e3, 1e3, 1e3, 1e3, 30.0, 2.0):  # also such as a clip of only long records would let pass
        own = np.zeros((1, CLASSES), np.uint8)
        own[0, rng.permutation(CLASSES)[:positives]] = 1
        record = (length * rng.standard_normal((1, DIM))).astype(np.float32)
        run = NoiseSource("seeded", "labels", name, positives)
        run.transcript, worlds = [], {"run": run}
        fit(method, parameters, problem, plan, run, features, labels)
        for world in ("without", "with"):
            worlds[world] = Replay(run)
            more = (record, own) if world == "with" else (features[:0], labels[:0])
            given = (np.concatenate(pair) for pair in zip((features, labels), more, strict=True))
            fit(method, parameters, problem, plan, worlds[world], *given)
        steps = {}
        for (event, step, *_), left, right in zip(
            run.transcript, worlds["without"].queries, worlds["with"].queries, strict=True
        ):
            steps[event, step] = steps.get((event, step), 0.0) + float(np.square(right.astype(np.float64) - left).sum())
        for (event, _), squared in steps.items():
            largest[event] = max(largest.get(event, 0.0), squared**0.5)
    charged = {event.name: event.sensitivity for event in plan.events}
    assert largest.keys() == charged.keys()
    for event, found in largest.items():
        assert 0.3 * charged[event] < found <= charged[event] * (1 + 1e-3), (event, found, charged[event])


def fit(method, parameters, problem, plan, source, features, labels):
    with suppress(EnoughError):  # a tape ends with the last release
        method.fit(method.prepare([(features, labels)], parameters, problem), parameters, problem, plan, source)
