"""Accuracy on training records: percent over all parts, refused where the records are somebody's own."""

from types import SimpleNamespace

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.aggregate import aggregate
from dpstudy.evaluation.evaluate import evaluate
from dpstudy.evaluation.judge import judge
from dpstudy.evaluation.metric import Metric
from dpstudy.evaluation.metrics import metric_of
from dpstudy.evaluation.on_training import accuracy_on, check_on_training
from dpstudy.features.shards import FeatureTable

IDENTITY = SimpleNamespace(scores=lambda features: features)


def table(scores, labels):
    return FeatureTable(np.array([str(i) for i in range(len(labels))], object), np.array(scores), np.array(labels))


def test_every_record_of_every_part_counts_once():
    parts = [table([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [0, 0, 1]), table([[1.0, 0.0]], [0])]
    assert accuracy_on(IDENTITY, parts) == {"train_top1": 75.0}


def test_no_rows_and_several_labels_are_refused():
    with pytest.raises(StudyError, match="there are no training rows"):
        accuracy_on(IDENTITY, [])
    with pytest.raises(StudyError, match="'train_top1' needs one label a record"):
        accuracy_on(IDENTITY, [table([[1.0, 0.0]], [[1, 0]])])


def test_what_looks_at_the_test_split_leaves_it_to_others():
    scores, labels, metrics = np.eye(3), np.arange(3), ["top1", "train_top1"]
    assert evaluate(scores, labels, metrics, list("abc")) == {"top1": 100.0}
    options = {"metrics": metrics, "smallest_group": 1, "small_groups": "merge"}
    scores, labels = np.tile(scores, (2, 1)), np.tile(labels, 2)
    assert set(judge(scores, labels, list("abc"), options)) == {"top1_low", "top1_high"}
    rows = [{"seed": seed, "split": "test", "top1": 90.0, "train_top1": 95.0 + seed} for seed in (0, 1)]
    assert aggregate(rows)[0] == {"top1": 90.0, "train_top1": 95.5}


@pytest.mark.parametrize(
    ("metrics", "dataset", "sentence"),
    [
        (["train_top1"], {"reader": "cifar"}, "'train_top1' stands first, which searches maximise"),
        (["top1", "train_top1"], {"reader": "image_folder"}, "depends on the private records of data set 'mine'"),
        (
            ["top1", "train_top1"],
            {"reader": "cifar", "extra": {"reader": "image_folder"}},
            "they are your own .reader 'image_folder'",
        ),
    ],
)
def test_own_data_and_searches_by_it_are_refused(metrics, dataset, sentence):
    config = {"evaluation": {"metrics": metrics}, "datasets": {"mine": dataset}}
    with pytest.raises(StudyError, match=sentence):
        check_on_training(config)


def test_a_metric_of_which_less_is_better_is_not_searched_by(monkeypatch):
    loss = Metric(order=9, label="loss", percent=False, lower_is_better=True)
    monkeypatch.setattr("dpstudy.evaluation.on_training.metric_of", {"top1": metric_of("top1"), "loss": loss}.get)
    with pytest.raises(StudyError, match="'loss' stands first, which searches maximise; put another there"):
        check_on_training({"evaluation": {"metrics": ["loss", "top1"]}, "datasets": {}})
    check_on_training({"evaluation": {"metrics": ["top1", "loss"]}, "datasets": {}})


def test_public_research_data_are_not():
    check_on_training({"evaluation": {"metrics": ["top1", "train_top1"]}, "datasets": {"mnist": {"reader": "idx"}}})
