"""The privacy conversions of anon_smoothing, whose guarantee is claimed, not proved; nothing here is certified."""

import math


def rho_of(epsilon: float, delta: float) -> float:
    """The rho of zCDP for which rho + 2 sqrt(rho ln(1/delta)) = epsilon (section 2).

    >>> round(rho_of(3.0, 1e-5), 3)
    0.173
    """
    logarithm = math.log(1 / delta)
    return (math.sqrt(logarithm + epsilon) - math.sqrt(logarithm)) ** 2


def noise_multiplier(rho: float, delta: float) -> float:
    """sigma of Theorem 1, sqrt(2 ln(1/delta)/rho); its delta bounds a tail, not the guarantee."""
    return math.sqrt(2 * math.log(1 / delta) / rho)
