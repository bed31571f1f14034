"""Wilson's interval of a share."""

import math

_Z = 1.959964  # of 95 % intervals


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % score interval of a share of `count` independent records (Wilson 1927); it has a length at 0 and 1 too.

    >>> [round(end, 4) for end in wilson(0.9, 100)]
    [0.8256, 0.9448]

    Args:
        share: between 0 and 1.
        count: at least 1.
    """
    weight = 1 + _Z**2 / count
    centre = (share + _Z**2 / (2 * count)) / weight
    half = _Z / weight * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    return max(0.0, centre - half), min(1.0, centre + half)
