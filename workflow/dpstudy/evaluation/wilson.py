"""Wilson's score interval of a proportion."""

import math

Z = 1.959964  # of 95 % intervals


def wilson(share: float, count: float, quantile: float = Z) -> tuple[float, float]:
    """The 95 % score interval of a proportion of `count` independent records (Wilson 1927), which contains it.

    It has a positive length at 0 and 1 too.

    >>> [round(end, 4) for end in wilson(0.9, 100)]
    [0.8256, 0.9448]

    Args:
        share: between 0 and 1.
        count: above 0; no whole number where it is an effective one.
        quantile: of Student's distribution, where the variance is an estimate.
    """
    weight = 1 + quantile**2 / count
    centre = (share + quantile**2 / (2 * count)) / weight
    half = quantile / weight * math.sqrt(max(0.0, share * (1 - share)) / count + quantile**2 / (4 * count**2))
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
