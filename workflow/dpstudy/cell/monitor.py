"""Test scores of a model during training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpstudy.evaluation.evaluate import evaluate
from dpstudy.evaluation.metrics import auc, average_precision, balanced_accuracy, top1, top5
from dpstudy.features.shards import FeatureTable
from dpstudy.methods.problem import Plan
from dpstudy.privacy.ledger import check_spent
from dpstudy.privacy.noise import NoiseSource

# The metrics of every curve, whatever a study reports, so that to report another retrains nothing. One added here makes
# every cell that was trained in steps stale, which is why none is added automatically.
CURVES = {
    "top1": top1.METRIC,
    "top5": top5.METRIC,
    "balanced_accuracy": balanced_accuracy.METRIC,
    "auc": auc.METRIC,
    "average_precision": average_precision.METRIC,
}


def metrics_of_curves(labels: np.ndarray, classes: int) -> list[str]:
    """The metrics of training curves (CURVES) that are defined for these labels.

    Areas take a sort for each class, at each point; so they are for several labels a record and for two classes.

    Args:
        labels: (n,) class indices, or (n, m) zeros and ones; areas need a label that some bear and some do not.
    """
    bearers = labels.sum(axis=0) if labels.ndim == 2 else np.bincount(labels)[-1:] if classes == 2 else np.zeros(1)
    mixed = np.any((bearers > 0) & (bearers < len(labels)))
    return [name for name, metric in CURVES.items() if (mixed if metric.area else labels.ndim == 1)]


@dataclass(frozen=True)
class Monitor:
    """A callback that a method calls as monitor(step, model), and that scores the model on the test split.

    Attributes:
        rows: (seed, step, "test", metric, value), one a metric and step.
        check: called with the step: holds what the curve will say was spent by then against what was.
    """

    seed: int
    test: FeatureTable
    classes: Sequence[str]
    rows: list[tuple] = field(default_factory=list)
    check: Callable[[int], None] | None = None

    def __call__(self, step: int, model) -> None:
        if self.check:
            self.check(step)
        given, labels = model.scores(self.test.features), self.test.labels
        if not np.isfinite(given).all():
            return  # a point less: no test record, which may be private, ends a training
        scores = evaluate(given, labels, metrics_of_curves(labels, len(self.classes)), list(self.classes))
        self.rows.extend((self.seed, step, "test", name, value) for name, value in scores.items())

    def anew(self, check: Callable[[int], None] | None = None) -> "Monitor":
        """A fresh monitor of the same cell, for another training."""
        return replace(self, rows=[], check=check)


def holds_spent(method, plan: Plan, source: NoiseSource) -> Callable[[int], None]:
    """A check that a method's `spent` counts all releases made up to a step."""

    def check(step: int) -> None:
        if plan.events:
            check_spent(method.spent(plan, step), source.drawn, step)

    return check
