"""Exact accounting of Gaussian mechanisms (Gaussian DP).

A Gaussian release with noise multiplier s is 1/s-Gaussian-DP; k adaptive releases compose to
mu^2 = sum 1/s^2 (Dong, Roth and Su 2022, Corollary 3.3), and mu-GDP is (epsilon, delta)-DP exactly for
delta = Phi(-epsilon/mu + mu/2) - exp(epsilon) Phi(-epsilon/mu - mu/2) (Balle and Wang 2018, Theorem 8).
"""

import math
from collections.abc import Callable, Iterable
from functools import lru_cache

from scipy.special import log_ndtr

from dpstudy.privacy.events import Event, unproved

_BISECTIONS = 200


def composed_mu(events: Iterable[Event]) -> float:
    """The mu of the composition of unamplified Gaussian events; infinite if one has no noise, or no bound.

    Shuffled fixed batches: a unit takes part in `epochs` releases, each with the full noise, and the others do
    not depend on it, so mu = sqrt(epochs)/s, under zero-out adjacency (the unit's place stays, its contribution
    becomes zero).
    """
    total = 0.0
    for event in events:
        if event.noise_multiplier == 0 or unproved([event]):
            return math.inf
        total += event.participations / event.noise_multiplier**2
    return math.sqrt(total)


def delta_of(epsilon: float, mu: float) -> float:
    """The smallest delta of mu-Gaussian-DP at `epsilon`.

    >>> round(delta_of(1.0, 1.0), 6)
    0.126937
    """
    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    first = log_ndtr(-epsilon / mu + mu / 2)
    second = epsilon + log_ndtr(-epsilon / mu - mu / 2)
    return max(0.0, float(math.exp(first) * -math.expm1(min(0.0, second - first))))


@lru_cache(maxsize=1024)
def epsilon_of(mu: float, delta: float) -> float:
    """The smallest epsilon >= 0 for which mu-Gaussian-DP implies (epsilon, delta)-DP, rounded up.

    >>> round(epsilon_of(1.0, 1e-5), 4)
    4.3772
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in (0, 1), got {delta}")
    if math.isinf(mu):
        return math.inf
    if delta_of(0.0, mu) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_of(high, mu) > delta:
        low, high = high, 2 * high
    return turn(lambda epsilon: delta_of(epsilon, mu) <= delta, low, high)[1]


@lru_cache(maxsize=1024)  # methods ask for it in every step
def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu whose Gaussian-DP implies (epsilon, delta)-DP, rounded down.

    >>> mu = mu_of(1.0, 1e-5); epsilon_of(mu, 1e-5) <= 1.0
    True
    """
    if math.isinf(epsilon):
        return math.inf
    low, high = 0.0, 1.0
    while delta_of(epsilon, high) <= delta:
        low, high = high, 2 * high
    return turn(lambda mu: delta_of(epsilon, mu) > delta, low, high)[0]


def turn(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """The ends of the interval that bisection of [low, high] leaves: of `holds`, false below and true from there on.

    >>> turn(lambda x: x * x >= 2, 1.0, 2.0)[1]
    1.4142135623730951
    """
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
