"""95 % intervals that join what two drawings leave open: that of the training seeds and that of the test records."""

import math
from collections.abc import Sequence

import numpy as np

from dpstudy.evaluation.metrics import metric_of

_UPPER = 0.975  # of 95 % intervals


def joined(
    values: Sequence[float], over_records: tuple[float, float] | None, metric: str
) -> tuple[float, float] | None:
    """The interval of a cell's mean, over seeds and test records together.

    The spread of seeds on one test split is that of training alone (noise, sampling, initialisation), and bootstrap
    intervals of one model are of the test records alone: the two errors are independent and their squares add. A mean
    over seeds lies within Student's t of its standard error; the same records score every seed, so that their error
    does not shrink with the number of seeds.

    Args:
        values: the metric, seed by seed; of a single seed nothing is known of training.
        over_records: the mean lower and mean upper end of the seeds' intervals over test records, or None.
        metric: its name; ends are cut to its range.

    Returns:
        (low, high) around the mean; None without intervals over test records.
    """
    if over_records is None:
        return None
    mean, training = float(np.mean(values)), _seeds(values)
    below = math.hypot(training, max(0.0, mean - over_records[0]))
    above = math.hypot(training, max(0.0, over_records[1] - mean))
    return max(0.0, mean - below), min(100.0 if metric_of(metric).percent else 1.0, mean + above)


def _seeds(values: Sequence[float]) -> float:
    """Half the length of the t interval of the mean; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    from scipy.special import stdtrit  # for studies that ask for intervals

    error = float(np.std(np.asarray(values, np.float64), ddof=1)) / math.sqrt(len(values))
    return float(stdtrit(len(values) - 1, _UPPER)) * error
