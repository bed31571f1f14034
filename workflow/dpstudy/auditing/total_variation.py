"""Total variation distance between Gaussians fitted to two samples (de2022 A.2, phase I)."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr


def fitted_distance(one: Sequence[float] | np.ndarray, other: Sequence[float] | np.ndarray) -> float:
    """The total variation distance, in [0, 1], between Gaussians with two samples' means and standard deviations.

    Raises:
        ValueError: a sample has fewer than two numbers, which say nothing of a deviation.
    """
    if min(len(one), len(other)) < 2:
        raise ValueError("a deviation needs at least two numbers")
    return total_variation(*_fitted(one), *_fitted(other))


def total_variation(mean: float, std: float, other_mean: float, other_std: float) -> float:
    """The total variation distance between N(mean, std^2) and N(other_mean, other_std^2).

    It is P(A) - Q(A) for the set A where the density of P is the larger one. The logarithms of both densities are
    parabolas, which cross at two points, or at one where the deviations are equal. A deviation of 0 is a point mass.

    >>> round(total_variation(0.0, 1.0, 1.0, 1.0), 4)
    0.3829
    """
    if std == 0 or other_std == 0:
        return float(mean != other_mean or std != other_std)
    # in units of the first: P = N(0, 1), Q = N(far, wide^2)
    far, wide = (other_mean - mean) / std, other_std / std
    curve, slope, level = 1 - wide**-2, far / wide**2, -(far**2) / (2 * wide**2) - math.log(wide)
    crossings = _roots(curve / 2, slope, level)
    between = np.concatenate([[-np.inf], crossings, [np.inf]])
    masses = np.diff(ndtr(between)) - np.diff(ndtr((between - far) / wide))
    return float(np.abs(masses).sum() / 2)


def _fitted(sample: Sequence[float] | np.ndarray) -> tuple[float, float]:
    return float(np.mean(sample)), float(np.std(sample, ddof=1))


def _roots(square: float, slope: float, level: float) -> list[float]:
    """The real roots of square x^2 + slope x + level, ascending; none where all is 0.

    By the form that does not subtract nearly equal numbers: deviations that are almost equal give a tiny square.
    """
    if square == 0 and slope == 0:
        return []
    inner = max(slope**2 - 4 * square * level, 0.0)
    half = -(slope + math.copysign(math.sqrt(inner), slope)) / 2
    roots = [level / half] if half else [0.0]
    if square:
        roots.append(half / square)
    return sorted(root for root in roots if math.isfinite(root))
