"""Every metric: one definition for its value and for a bootstrap, and what it says of itself is so."""

import numpy as np
import pytest

from dpstudy.cell.monitor import CURVES
from dpstudy.core.errors import StudyError
from dpstudy.evaluation.evaluate import evaluate
from dpstudy.evaluation.metrics import metric_of, modules, names, ordered

ON_TEST = [name for name in names() if not metric_of(name).on_training]
EXACT = [name for name in ON_TEST if metric_of(name).point is None]


def split(kind, rows=120):
    """Scores with ties, labels and classes: ten exclusive classes, two, or several labels a record."""
    random, m = np.random.default_rng(0), 2 if kind == "two" else 10
    scores = random.integers(0, 5, (rows, m)).astype(np.float64)
    labels = random.integers(0, 2, (rows, m)) if kind == "several" else random.integers(0, m, rows)
    return scores, labels, [str(number) for number in range(m)]


@pytest.mark.parametrize("kind", ["ten", "two", "several"])
@pytest.mark.parametrize("name", ON_TEST)
def test_weights_of_one_give_the_point(name, kind):
    metric, (scores, labels, classes) = metric_of(name), split(kind)
    if not metric.suits(labels, classes):
        pytest.skip("such labels leave nothing to measure")
    point = evaluate(scores, labels, [name], classes)[name]
    assert metric.weighted(scores, labels, classes, np.ones((3, len(scores)))) == pytest.approx(point, abs=1e-12)
    alone = metric.weighted(scores, labels, classes, np.ones((1, len(scores))))[0]
    assert name not in EXACT or alone == point, "to the last bit, where no library computes the point"


@pytest.mark.parametrize("name", ON_TEST)
def test_a_weight_counts_a_record_so_often(name):
    metric, (scores, labels, classes) = metric_of(name), split("ten")
    counts = np.random.default_rng(1).integers(0, 4, len(scores))
    drawn = np.repeat(np.arange(len(scores)), counts)
    repeated = metric.weighted(scores[drawn], labels[drawn], classes, np.ones((1, len(drawn))))
    assert metric.weighted(scores, labels, classes, counts[None].astype(float)) == pytest.approx(repeated, abs=1e-9)


@pytest.mark.parametrize("name", ON_TEST)
def test_a_model_that_errs_nowhere_has_the_most_and_random_scores_less(name):
    metric, labels = metric_of(name), np.arange(60) % 10
    most, classes = 100.0 if metric.percent else 1.0, [str(number) for number in range(10)]
    random = np.random.default_rng(0).random((60, 10))
    perfect, drawn = (metric.value(50 * one, labels, classes) for one in (np.eye(10)[labels], random))  # log odds
    assert perfect == pytest.approx(0 if metric.lower_is_better else most, abs=1e-9)
    assert 0 <= drawn <= 2 * most and metric.merit(perfect) > metric.merit(drawn), "its direction is as it says"


@pytest.mark.parametrize("name", [name for name in ON_TEST if metric_of(name).chance])
@pytest.mark.parametrize("m", [2, 10])
def test_scores_at_random_have_what_chance_says(name, m):
    """Also where classes are not balanced."""
    metric, random = metric_of(name), np.random.default_rng(0)
    labels, classes = random.choice(m, 20_000, p=np.arange(1, m + 1) / (m * (m + 1) / 2)), [str(n) for n in range(m)]
    if not metric.suits(labels, classes):
        pytest.skip("such labels leave nothing to measure")
    value = metric.value(random.random((20_000, m)), labels, classes)
    assert value == pytest.approx(metric.chance(m), abs=0.02 * (100 if metric.percent else 1))


def test_chance_is_known_where_it_depends_on_nothing_but_the_classes():
    known = {name: metric_of(name).chance(20) for name in names() if metric_of(name).chance}
    assert known == {"top1": 5, "top5": 25, "balanced_accuracy": 5, "auc": 0.5, "sensitivity_90": 10, "train_top1": 5}


def test_the_order_is_that_of_every_output_and_nothing_else_is_a_metric():
    published = ["top1", "top5", "balanced_accuracy", "auc", "average_precision", "train_top1"]
    assert ordered(["seed", "top1_low", *reversed(published)]) == published
    assert len({metric_of(name).order for name in names()}) == len(names())
    assert modules(["auc", "seed"]) == ["dpstudy.evaluation.metrics.auc"]


def test_curves_have_metrics_of_the_test_split_in_that_order():
    assert list(CURVES) == ordered(CURVES) and all(metric_of(name) is metric for name, metric in CURVES.items())


def test_an_unknown_metric_is_named_with_one_that_is_close():
    with pytest.raises(StudyError, match=r"unknown metric 'acu' \(did you mean 'auc'\?\); there is auc"):
        metric_of("acu")
