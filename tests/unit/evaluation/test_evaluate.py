import subprocess
import sys

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.aggregate import aggregate
from dpstudy.evaluation.evaluate import evaluate, undefined

TEN = [str(i) for i in range(10)]


def slow_top_k(scores, labels, k):
    hits = 0
    for row, label in zip(scores, labels, strict=True):
        best = sorted(range(len(row)), key=lambda j: (-row[j], j))[:k]
        hits += label in best
    return 100 * hits / len(labels)


def slow_auc(member, score):
    """The probability that a member outscores a non-member, ties counted half."""
    inside, outside = score[member], score[~member]
    return sum((a > b) + 0.5 * (a == b) for a in inside for b in outside) / (len(inside) * len(outside))


@pytest.fixture
def tied():
    """Scores with many ties, and labels."""
    random = np.random.default_rng(0)
    return random.integers(0, 4, (300, 10)).astype(np.float32), random.integers(0, 10, 300)


def test_top_k_is_that_of_a_loop(tied):
    found = evaluate(*tied, ["top1", "top5"], TEN)
    assert found["top1"] == pytest.approx(slow_top_k(*tied, 1), abs=1e-12)
    assert found["top5"] == pytest.approx(slow_top_k(*tied, 5), abs=1e-12)
    assert found["top1"] == pytest.approx(100 * np.mean(tied[0].argmax(1) == tied[1]))


def test_a_tie_goes_to_the_first_class():
    scores = np.zeros((2, 3))
    assert evaluate(scores, np.array([0, 0]), ["top1"], ["a", "b", "c"]) == {"top1": 100.0}
    assert evaluate(scores, np.array([1, 2]), ["top1"], ["a", "b", "c"]) == {"top1": 0.0}


def test_top5_needs_more_than_five_classes():
    assert list(evaluate(np.eye(5), np.arange(5), ["top1", "top5"], list("abcde"))) == ["top1"]
    assert evaluate(np.eye(6), np.arange(6), ["top1", "top5"], list("abcdef"))["top5"] == 100.0


def test_auc_of_exclusive_classes(tied):
    scores, labels = tied
    slow = np.mean([slow_auc(labels == j, scores[:, j]) for j in range(10)])
    assert evaluate(scores, labels, ["auc"], TEN)["auc"] == pytest.approx(slow, abs=1e-12)


def test_auc_equals_scikit_learn_on_probabilities():
    from sklearn.metrics import roc_auc_score

    random = np.random.default_rng(1)
    probabilities = random.dirichlet(np.ones(4), 200)
    labels = random.integers(0, 4, 200)
    expected = roc_auc_score(labels, probabilities, multi_class="ovr", average="macro")
    assert evaluate(probabilities, labels, ["auc"], list("abcd"))["auc"] == pytest.approx(expected)


def test_auc_of_two_classes_ranks_by_the_difference_of_scores():
    random = np.random.default_rng(2)
    scores, labels = random.normal(size=(80, 2)), random.integers(0, 2, 80)
    expected = slow_auc(labels == 1, scores[:, 1] - scores[:, 0])
    assert evaluate(scores, labels, ["auc"], ["no", "yes"])["auc"] == pytest.approx(expected)


def test_auc_of_many_labels_leaves_out_those_with_one_value():
    random = np.random.default_rng(3)
    scores, labels = random.normal(size=(60, 4)), random.integers(0, 2, (60, 4)).astype(np.int8)
    labels[:, 1], labels[:, 3] = 0, 1
    expected = np.mean([slow_auc(labels[:, j] == 1, scores[:, j]) for j in (0, 2)])
    assert evaluate(scores, labels, ["auc"], list("abcd"))["auc"] == pytest.approx(expected)


def test_balanced_accuracy_equals_scikit_learn(tied):
    from sklearn.metrics import balanced_accuracy_score

    expected = 100 * balanced_accuracy_score(tied[1], tied[0].argmax(1))
    assert evaluate(*tied, ["balanced_accuracy"], TEN)["balanced_accuracy"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("scores", "labels", "metric", "message"),
    [
        (np.array([[0.0, 1], [np.nan, 0], [0, 0]]), [0, 1, 0], "top1", "row 1 .*NaN"),
        (np.array([[0.0, 1], [np.inf, 0], [0, 0]]), [0, 1, 0], "top1", "row 1 .*infinite"),
        (np.zeros((3, 2)), [0, 2, 0], "top1", "row 1 has the label 2"),
        (np.zeros((3, 2)), [0, 1, -1], "top1", "row 2 has the label -1"),
        (np.zeros((3, 2)), [[0, 1], [1, 1], [0, 0]], "top1", "one label a record"),
        (np.zeros((3, 3)), [0, 1, 0], "top1", "shape"),
        (np.zeros((3, 2)), [0, 1], "top1", "shape"),
        (np.zeros((0, 2)), [], "top1", "no records"),
        (np.zeros((3, 2)), [0, 0, 1], "top2", "unknown metric 'top2'"),
    ],
)
def test_bad_input_is_named(scores, labels, metric, message):
    with pytest.raises(StudyError, match=message):
        evaluate(scores, np.array(labels, dtype=int), [metric], ["a", "b"])


@pytest.mark.parametrize("labels", [np.zeros(4, int), np.ones(4, int), np.zeros((4, 2), int), np.ones((4, 2), int)])
def test_a_metric_that_no_label_defines_is_left_out_and_named(labels):
    """One more record with another label defines it: an error would let one test record decide about a release."""
    areas, scores = ["auc", "average_precision", "sensitivity_90"], np.random.default_rng(0).normal(size=(4, 2))
    asked = [*areas, "ece", "train_top1"]
    assert list(evaluate(scores, labels, asked, ["a", "b"])) == ["ece"]
    assert undefined(labels, asked, ["a", "b"]) == areas
    labels = labels.copy()
    labels[0] = 1 - labels[0]
    assert list(evaluate(scores, labels, asked, ["a", "b"])) == [*areas, "ece"]
    assert undefined(labels, asked, ["a", "b"]) == []


def test_top1_does_not_import_scikit_learn():
    code = (
        "import sys, numpy as np; import dpstudy.evaluation.aggregate;"
        "from dpstudy.evaluation.evaluate import evaluate;"
        "evaluate(np.eye(6), np.arange(6), ['top1', 'top5'], list('abcdef')); sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_aggregate():
    rows = [{"seed": s, "split": "test", "top1": v, "seconds": 9.0} for s, v in enumerate([90.0, 92.0, 97.0])]
    mean, median, std = aggregate(rows)
    assert (mean, median) == ({"top1": 93.0}, {"top1": 92.0})
    assert std["top1"] == pytest.approx((((-3) ** 2 + (-1) ** 2 + 4**2) / 2) ** 0.5)
    assert aggregate(rows[:1])[2] == {"top1": 0.0}


def test_aggregate_refuses_what_does_not_belong_together():
    with pytest.raises(ValueError, match="splits"):
        aggregate([{"split": "test", "top1": 1.0}, {"split": "validation", "top1": 1.0}])
    with pytest.raises(ValueError, match="same metrics"):
        aggregate([{"split": "test", "top1": 1.0}, {"split": "test", "auc": 1.0}])
    with pytest.raises(ValueError, match="no seeds"):
        aggregate([])
