"""The standard error of a mean over seeds whose models are scored on the same test records."""

import math

_WIDTH = 2 * 1.959964  # of a 95 % interval of a normal distribution, in standard deviations


def standard_error(std: float, seeds: int, over_records: tuple[float, float] | None) -> float:
    """The root of the sum of squared standard errors over seeds, std / sqrt(seeds), and over test records.

    >>> round(standard_error(0.3, 4, (89.02, 90.98)), 4)
    0.522

    Args:
        std: standard deviation over seeds.
        seeds: how many.
        over_records: the mean ends of their 95 % intervals over test records, where there are any.
    """
    low, high = over_records or (0.0, 0.0)
    return math.hypot(std / math.sqrt(seeds), (high - low) / _WIDTH)
