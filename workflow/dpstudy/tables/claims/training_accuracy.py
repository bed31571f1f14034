"""Accuracy on training records in claims, where the study measures it (train_top1)."""

import math
from collections.abc import Callable, Mapping

from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.on_training import ON_TRAINING
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.scores import Run


def on_training(run: Run) -> Value | None:
    """A cell's accuracy on its training records; None where the study does not measure it."""
    return _over_seeds(run, lambda row: row[ON_TRAINING])


def gap(run: Run) -> Value | None:
    """The accuracy on training records minus that on the test split."""
    return _over_seeds(run, lambda row: row[ON_TRAINING] - row["top1"])


def _over_seeds(run: Run, of: Callable[[Mapping], float]) -> Value | None:
    rows = [row for row in run.metrics.get("seeds", ()) if ON_TRAINING in row]
    if not rows:
        return None
    mean, _, std = mean_median_std([of(row) for row in rows])
    return Value(mean, std / math.sqrt(len(rows)) if len(rows) > 1 else None)
