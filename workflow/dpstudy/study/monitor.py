"""Scores of a model on the test split while it learns."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dpstudy.evaluation.metrics import evaluate
from dpstudy.features.shards import FeatureTable


@dataclass(frozen=True)
class Monitor:
    """What a method calls as monitor(step, model).

    Attributes:
        rows: (seed, step, "test", metric, value), one a metric and step.
    """

    seed: int
    test: FeatureTable
    metrics: Sequence[str]
    classes: Sequence[str]
    rows: list[tuple] = field(default_factory=list)

    def __call__(self, step: int, model) -> None:
        scores = evaluate(model.scores(self.test.features), self.test.labels, list(self.metrics), list(self.classes))
        self.rows.extend((self.seed, step, "test", name, value) for name, value in scores.items())

    def anew(self) -> "Monitor":
        """The same for another training."""
        return replace(self, rows=[])
