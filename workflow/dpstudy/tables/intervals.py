"""95 % intervals over training seeds and test records together, and of means over repeated splits."""

import math
from collections.abc import Sequence

import numpy as np

from dpstudy.evaluation.metrics import metric_of

_UPPER = 0.975  # of 95 % intervals
# Times what Nadeau and Bengio take the splits' overlap to be worth: chosen by `python -m benchmarks draws`.
_SHARED = 1.5


def joined(
    values: Sequence[float], over_records: tuple[float, float] | None, metric: str
) -> tuple[float, float] | None:
    """The interval of a cell's mean over seeds and test records together.

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


def over_draws(values: Sequence[Sequence[float]], tested: float, metric: str) -> tuple[float, float] | None:
    """The interval of the mean over repeated splits of the same records, for records drawn anew.

    Splits share records, so that their mean varies more than independent ones would have it: with s^2 the variance of
    single values, its own is taken to be (1/J + c tested) s^2 over J splits (Nadeau and Bengio 2003, section 4, with c
    = 1, by which 90 % were covered). s^2 holds the noise of trainings, which is anew in each split: where that is
    large, the interval is too wide.

    Args:
        values: the metric, split by split, and seed by seed of each.
        tested: how many units are in the test split for each that is learned from.
        metric: its name; ends are cut to its range.

    Returns:
        (low, high); None of a single split.
    """
    if len(values) < 2:
        return None
    from scipy.special import stdtrit

    count, means = len(values), [float(np.mean(seeds)) for seeds in values]
    seeds = min(map(len, values))
    within = float(np.mean([np.var(of_draw, ddof=1) for of_draw in values])) if seeds > 1 else 0.0
    single = float(np.var(means, ddof=1)) + within * (1 - 1 / seeds)
    half = float(stdtrit(count - 1, _UPPER)) * math.sqrt(single * (1 / count + _SHARED * tested))
    mean, most = float(np.mean(means)), 100.0 if metric_of(metric).percent else 1.0
    return max(0.0, mean - half), min(most, mean + half)


def _seeds(values: Sequence[float]) -> float:
    """Half the length of the t interval of the mean; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    from scipy.special import stdtrit  # for studies that ask for intervals

    error = float(np.std(np.asarray(values, np.float64), ddof=1)) / math.sqrt(len(values))
    return float(stdtrit(len(values) - 1, _UPPER)) * error
