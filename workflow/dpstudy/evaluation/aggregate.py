"""Statistics over the seeds of a cell."""

from collections.abc import Mapping, Sequence

import numpy as np

from dpstudy.evaluation.metrics import ordered


def aggregate(seed_rows: list[dict]) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """The mean, median and standard deviation of each metric over one cell's rows, one row per seed.

    Raises:
        ValueError: no rows, rows of several splits, or rows that do not all have the same metrics.
    """
    if not seed_rows:
        raise ValueError("no seeds to aggregate")
    if len({row.get("split") for row in seed_rows}) > 1:
        raise ValueError("rows of several splits cannot be aggregated together")
    names = ordered(seed_rows[0])
    if any(ordered(row) != names for row in seed_rows):
        raise ValueError("every seed must have the same metrics")
    columns = {name: mean_median_std([row[name] for row in seed_rows]) for name in names}
    mean, median, std = ({name: values[i] for name, values in columns.items()} for i in range(3))
    return mean, median, std


def mean_interval(entries: Sequence[Mapping], metric: str) -> tuple[float, float] | None:
    """The means over seeds of a metric's interval ends (low, high); None unless every seed has an interval.

    Args:
        entries: the seeds of a metrics.json, or one group of each.
    """
    ends = [(entry[f"{metric}_low"], entry[f"{metric}_high"]) for entry in entries if f"{metric}_low" in entry]
    if not ends or len(ends) < len(entries):
        return None
    low, high = np.mean(ends, axis=0)
    return float(low), float(high)


def mean_median_std(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, median and sample standard deviation (divisor n - 1; 0 for a single value).

    >>> mean_median_std([1.0, 2.0, 6.0])
    (3.0, 2.0, 2.6457513110645907)
    """
    array = np.asarray(values, dtype=np.float64)
    spread = float(np.std(array, ddof=1)) if len(array) > 1 else 0.0
    return float(np.mean(array)), float(np.median(array)), spread
