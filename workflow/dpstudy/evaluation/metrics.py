"""Metrics of a classifier on a public test split.

The labels that enter here are public by assumption: these functions add no noise and must not see private records.
Accuracies are in percent; the area under the ROC curve and average precision are fractions between 0 and 1.
"""

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.finite import check_scores
from dpstudy.evaluation.on_training import ON_TRAINING
from dpstudy.evaluation.ranks import ranks

# Name -> what a table or an axis calls it. The order is that of the columns and rows of every output.
METRICS = {
    "top1": "top-1 accuracy (%)",
    "top5": "top-5 accuracy (%)",
    "balanced_accuracy": "balanced accuracy (%)",
    "auc": "area under the ROC curve",
    "average_precision": "average precision",
    ON_TRAINING: "training top-1 accuracy (%)",  # of on_training.py; no function here computes it
}
PERCENT = frozenset({"top1", "top5", "balanced_accuracy", ON_TRAINING})


def evaluate(scores: np.ndarray, labels: np.ndarray, metrics: list[str], classes: list[str]) -> dict[str, float]:
    """Each metric of `metrics` on one split.

    Ties go to the class that comes first. `top5` is left out where there are at most five classes.

    Args:
        scores: (n, m) a score per record and class; the larger, the likelier.
        labels: (n,) class indices, or (n, m) zeros and ones where a record may have several labels.
        metrics: names from METRICS.
        classes: the m class names, in label order.

    Raises:
        StudyError: an unknown metric, an empty split, shapes that do not fit, a label out of range, a score that is
            not finite, or a metric that the kind of labels does not allow.
    """
    scores, labels = np.asarray(scores), np.asarray(labels)
    _check(scores, labels, metrics, classes)
    result = {}
    for name in METRICS:
        if name not in metrics or name == ON_TRAINING or (name == "top5" and len(classes) <= 5):
            continue
        if labels.ndim == 2 and name not in ("auc", "average_precision"):
            raise StudyError(f"evaluation: {name!r} needs one label a record; use 'auc' for data with several labels")
        if name == "auc":
            result[name] = area_under_curve(scores, labels, classes)
        elif name == "average_precision":
            result[name] = mean_average_precision(scores, labels, classes)
        elif name == "balanced_accuracy":
            result[name] = balanced_accuracy(scores, labels)
        else:
            result[name] = top_k(scores, labels, 1 if name == "top1" else 5)
    return result


def top_k(scores: np.ndarray, labels: np.ndarray, k: int) -> float:
    """Percent of records whose class is among the k highest scores; of equal scores the first class counts higher.

    >>> top_k(np.array([[0.2, 0.5, 0.3], [0.1, 0.6, 0.3]]), np.array([2, 1]), 1)
    50.0

    Args:
        scores: (n, m).
        labels: (n,) class indices.
    """
    return float(100.0 * np.mean(ranks(scores, labels) < k))


def balanced_accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Mean over the classes that occur of the percent of their records that are classified rightly.

    Args:
        scores: (n, m).
        labels: (n,) class indices.
    """
    right = np.argmax(scores, axis=1) == labels
    return float(100.0 * np.mean([np.mean(right[labels == label]) for label in np.unique(labels)]))


def area_under_curve(scores: np.ndarray, labels: np.ndarray, classes: list[str]) -> float:
    """Mean over classes of the one-versus-rest area under the ROC curve, a fraction.

    Classes that all or no records have are left out of the mean. With two exclusive classes it is the area under the
    curve of the difference of the two scores.

    Args:
        scores: (n, m).
        labels: (n,) class indices or (n, m) zeros and ones.

    Raises:
        StudyError: no class has both records that bear it and records that do not.
    """
    from sklearn.metrics import roc_auc_score

    return _mean_over_classes("auc", roc_auc_score, scores, labels, classes)


def mean_average_precision(scores: np.ndarray, labels: np.ndarray, classes: list[str]) -> float:
    """Mean over classes of the average precision, a fraction; which classes, and what is raised, as of the area."""
    from sklearn.metrics import average_precision_score

    return _mean_over_classes("average_precision", average_precision_score, scores, labels, classes)


def _mean_over_classes(name: str, score, scores: np.ndarray, labels: np.ndarray, classes: list[str]) -> float:
    if labels.ndim == 1 and len(classes) == 2:
        scores = scores[:, 1:] - scores[:, :1]
        member = labels[:, None] == 1
    else:
        member = labels != 0 if labels.ndim == 2 else labels[:, None] == np.arange(len(classes))
    mixed = [j for j in range(member.shape[1]) if 0 < member[:, j].sum() < len(member)]
    if not mixed:
        raise StudyError(f"evaluation: {name!r} needs a class that some records of the split have and others do not")
    return float(np.mean([score(member[:, j], scores[:, j]) for j in mixed]))


def _check(scores: np.ndarray, labels: np.ndarray, metrics: list[str], classes: list[str]) -> None:
    for name in metrics:
        if name not in METRICS:
            raise StudyError(f"evaluation: unknown metric {name!r}; known are {', '.join(METRICS)}")
    n, m = len(scores), len(classes)
    if n == 0:
        raise StudyError("evaluation: the split has no records; give it some in `splits`")
    if scores.shape != (n, m):
        raise StudyError(f"evaluation: scores have shape {scores.shape}, but ({n}, {m}) is needed for {m} classes")
    if labels.shape not in ((n,), (n, m)):
        raise StudyError(f"evaluation: labels have shape {labels.shape}, but ({n},) or ({n}, {m}) is needed")
    check_scores(scores)
    largest = m - 1 if labels.ndim == 1 else 1
    outside = (labels < 0) | (labels > largest)
    if outside.any():
        row = int(np.argwhere(outside)[0][0])
        raise StudyError(f"evaluation: row {row} has the label {labels[outside][0]}; allowed are 0 to {largest}")
