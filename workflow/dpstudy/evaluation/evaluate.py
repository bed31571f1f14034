"""Metrics of a classifier on a public test split.

The labels that enter here are public by assumption: these functions add no noise and must not see private records.
"""

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.metrics import metric_of, ordered


def evaluate(scores: np.ndarray, labels: np.ndarray, metrics: list[str], classes: list[str]) -> dict[str, float]:
    """The value of each metric on one split.

    Left out are metrics of training records, those that need more classes, and those that `undefined` names.

    Args:
        scores: (n, m) a score per record and class; the larger, the likelier. Ties go to the class that comes first.
        labels: (n,) class indices, or (n, m) zeros and ones where a record may have several labels.
        metrics: names of modules of `dpstudy.evaluation.metrics`.
        classes: the m class names, in label order.

    Raises:
        StudyError: an unknown metric, an empty split, shapes that do not fit, a label out of range, a score that is
            not finite, or a metric that the kind of labels does not allow.
    """
    scores, labels = np.asarray(scores), np.asarray(labels)
    for name in metrics:
        metric_of(name)
    _check(scores, labels, classes)
    result = {}
    for name in ordered(metrics):
        chosen = metric_of(name)
        if chosen.on_training or len(classes) <= chosen.more_than:
            continue
        if not chosen.suits(labels, classes):
            raise StudyError(f"evaluation: {name!r} needs one label a record; use 'auc' for data with several labels")
        if chosen.defined(labels, classes):
            result[name] = chosen.value(scores, labels, classes)
    return result


def undefined(labels: np.ndarray, metrics: list[str], classes: list[str]) -> list[str]:
    """Those of the metrics that a split with such labels gives no value, since no label tells its records apart.

    They are no error: whether a model that was paid for is scored, and released, must not go by a test record's label.
    """
    kinds = {name: metric_of(name) for name in ordered(metrics)}
    return [name for name, kind in kinds.items() if not kind.on_training and not kind.defined(labels, classes)]


def _check(scores: np.ndarray, labels: np.ndarray, classes: list[str]) -> None:
    n, m = len(scores), len(classes)
    if n == 0:
        raise StudyError("evaluation: the split has no records; give it some in `splits`")
    if scores.shape != (n, m):
        raise StudyError(f"evaluation: scores have shape {scores.shape}, but ({n}, {m}) is needed for {m} classes")
    if labels.shape not in ((n,), (n, m)):
        raise StudyError(f"evaluation: labels have shape {labels.shape}, but ({n},) or ({n}, {m}) is needed")
    broken = ~np.isfinite(scores).all(axis=1)
    if broken.any():
        raise StudyError(
            f"evaluation: row {np.argmax(broken)} has a score that is NaN or infinite ({broken.sum()} of {n} rows do); "
            "lower the learning rate or the clipping norm of this entry"
        )
    largest = m - 1 if labels.ndim == 1 else 1
    outside = (labels < 0) | (labels > largest)
    if outside.any():
        row = int(np.argwhere(outside)[0][0])
        raise StudyError(f"evaluation: row {row} has the label {labels[outside][0]}; allowed are 0 to {largest}")
