"""Accuracy on private training records, without noise: for public research data only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_reader
from dpstudy.evaluation.metrics import metric_of

if TYPE_CHECKING:
    from dpstudy.features.shards import FeatureTable

ON_TRAINING = "train_top1"  # its name among the metrics
UNPAID = (
    "The accuracy on the private training records (train_top1) is shown without noise; what it tells of them was not "
    "paid for."
)


def accuracy_on(model, tables: Iterable[FeatureTable]) -> dict[str, float]:
    """{ON_TRAINING: top-1 accuracy in percent on these training records}, without noise.

    Args:
        model: with `scores` of (n, d) features.
        tables: the records, part by part.

    Raises:
        StudyError: records with several labels, or no record.
    """
    from dpstudy.evaluation.ranks import ranks  # late: it imports NumPy, which planning a study does without

    right = rows = 0
    for table in tables:
        if table.labels.ndim == 2:
            raise StudyError(f"evaluation: {ON_TRAINING!r} needs one label a record")
        right += int((ranks(model.scores(table.features), table.labels) == 0).sum())
        rows += len(table)
    if not rows:
        raise StudyError(f"evaluation: {ON_TRAINING!r}: there are no training rows")
    return {ON_TRAINING: 100.0 * right / rows}


def check_on_training(config: dict) -> None:
    """Refuse training accuracy on a user's own data, and as the metric that searches maximise.

    Args:
        config: the study's, filled in.

    Raises:
        StudyError: a data set with a reader for own data, or the first metric, which searches maximise.
    """
    metrics = config["evaluation"]["metrics"]
    if metric_of(metrics[0]).on_training or metric_of(metrics[0]).lower_is_better:
        raise StudyError(f"evaluation.metrics: {metrics[0]!r} stands first, which searches maximise; put another there")
    if ON_TRAINING not in metrics:
        return
    for name, options in config["datasets"].items():
        if reader := own_reader(options):
            raise StudyError(
                f"evaluation.metrics: {ON_TRAINING!r} depends on the private records of data set {name!r}, and no "
                f"guarantee covers it; they are your own (reader {reader!r}): leave it out"
            )
