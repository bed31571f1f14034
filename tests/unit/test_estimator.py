"""The estimator against scikit-learn's own checks, and what only it decides."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpstudy import DPClassifier, StudyError, fit, predict

STEPPED = {"steps": 20, "learning_rate": 1.0, "clipping_norm": 1.0}


@pytest.mark.slow  # a hundred and fifty checks
@parametrize_with_checks(
    [
        DPClassifier(epsilon=8, delta=1e-3),
        DPClassifier("newton", epsilon=8, delta=1e-3),
        DPClassifier("first_order", epsilon="inf", delta=1e-3, options=STEPPED),
    ]
)
def test_scikit_learn_s_checks(estimator, check):
    check(estimator)


def records(seed=0):
    drawn = np.random.default_rng(seed)
    return drawn.standard_normal((300, 4)), np.array(["b", "a", "d"])[drawn.integers(3, size=300)]


def test_it_is_fit_and_predict():
    features, labels = records()
    found = DPClassifier(epsilon=1, delta=1e-4, classes=["a", "b", "c", "d"], random_state=3).fit(features, labels)
    places = np.array([["a", "b", "c", "d"].index(label) for label in labels])
    expected = fit("least_squares", features, places, classes=4, epsilon=1, delta=1e-4, seed=3)
    assert found.classes_.tolist() == ["a", "b", "c", "d"] and found.ledger_ == expected.ledger
    scores = predict(expected.model, features)
    assert np.array_equal(found.decision_function(features), scores)
    assert found.predict(features).tolist() == found.classes_[scores.argmax(1)].tolist()
    assert np.allclose(found.predict_proba(features), np.exp(scores) / np.exp(scores).sum(1, keepdims=True), atol=1e-6)
    secure = DPClassifier(epsilon=1, delta=1e-4, classes=["a", "b", "c", "d"], noise="secure").fit(features, labels)
    assert secure.ledger_["noise"] == "secure" and not np.array_equal(secure.decision_function(features), scores)


def test_classes_that_were_read_off_the_labels_are_told():
    told = DPClassifier(epsilon=1, delta=1e-4).fit(*records()).ledger_["not_accounted"]
    assert any("read off the private labels" in sentence for sentence in told)
    told = DPClassifier(epsilon=1, delta=1e-4, classes=["a", "b", "d"]).fit(*records()).ledger_["not_accounted"]
    assert not any("read off the private labels" in sentence for sentence in told)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 1}, "give delta, well below 1/n, such as delta=0.0001"),
        ({"epsilon": 1, "delta": 1e-4, "classes": ["a", "b"]}, "label 'd' is none of `classes`"),
        ({"epsilon": 1, "delta": 1e-4, "options": {"classes": 4}}, "name the classes, classes="),
        ({"epsilon": 1, "delta": 1e-4, "options": {"stepps": 3}}, "unknown hyper-parameter 'stepps'"),
    ],
)
def test_mistakes_are_told(options, words):
    with pytest.raises(StudyError, match=words):
        DPClassifier(**options).fit(*records())
