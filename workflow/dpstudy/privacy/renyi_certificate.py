"""An independent computation of Renyi DP for Poisson-sampled Gaussian releases, by numerical integration.

No series, and no code of dp-accounting: the integrals of the definition, over a grid. A release of noise s at rate q
has the density ratio g(x) = 1 - q + q exp((2x - 1)/(2 s^2)), x ~ N(0, s^2) without the unit. Its divergence of order a
is ln E[g^a]/(a - 1) for removing the unit, ln E[g^(1 - a)]/(a - 1) for adding it; the larger counts. E[g] = 1.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

# From 1.75 on, below which training's series do not converge. Where a large order is the best, divergences rise so
# steeply with it that others than those of training differ much.
ORDERS = (
    *(1 + x / 20 for x in range(15, 200)),
    *range(11, 128),
    *(2**k + j * 2**k // 4 for k in range(7, 14) for j in range(4)),
)
WHOLE = tuple(order for order in ORDERS if order == int(order))
_POINTS, _REACH = 12, 12  # grid points in the smaller of s and s^2, and how many s it goes beyond both means
_SMALL = 1e-3  # of ln E: below, the integrand's distance from 1 is added up
_RISEN = 1.2


def least_epsilon(
    divergence: Callable[[float], float], delta: float, orders: Sequence[float] = ORDERS, between: bool = False
) -> float:
    """The smallest epsilon over ascending Renyi orders (Canonne, Kamath and Steinke 2020).

    As a function of the order it has one minimum.

    Args:
        between: and over the integers around it.
    """

    def at(order: float) -> float:
        return divergence(order) + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)

    epsilons: dict[float, float] = {}
    for order in orders:
        epsilons[order] = at(order)
        if epsilons[order] > _RISEN * min(epsilons.values()) > 0:
            break
    place = min(range(len(epsilons)), key=lambda index: epsilons[orders[index]])
    low, high = (int(orders[min(max(0, place + step), len(orders) - 1)]) for step in (-1, 1))
    while between and low > 2 and high - low > 2:
        third = (high - low) // 3
        low, high = (low, high - third) if at(low + third) <= at(high - third) else (low + third, high)
    around = [at(order) for order in range(low, high + 1)] if between and low > 2 else []
    return max(0.0, min([*epsilons.values(), *around]))


def divergence_of(events: Sequence[Mapping]) -> Callable[[float], float]:
    """A function from the order to the Renyi divergence of these events, composed.

    Events are dictionaries of `mechanism`, `noise_multiplier`, `sampling_rate` and `count`.
    """
    return lambda order: sum(
        event["count"] * _divergence(event["noise_multiplier"], event["sampling_rate"], order) for event in events
    )


@lru_cache(maxsize=4096)
def _divergence(noise: float, rate: float, order: float) -> float:
    if rate == 1:
        return order / (2 * noise**2)
    return max(_logarithm(noise, rate, power) for power in (order, 1 - order)) / (order - 1)


def _logarithm(noise: float, rate: float, power: float) -> float:
    """ln E[g^power]."""
    step = min(noise, noise**2) / _POINTS
    points = np.arange(min(0.0, power) - _REACH * noise, max(1.0, power) + _REACH * noise, step)
    weights = -((points / noise) ** 2) / 2 + math.log(step / noise) - math.log(2 * math.pi) / 2
    exponents = (2 * points - 1) / (2 * noise**2)
    ratios = np.logaddexp(math.log1p(-rate), math.log(rate) + exponents)
    logarithm = float(np.logaddexp.reduce(weights + power * ratios))
    if logarithm > _SMALL:
        return logarithm
    near = np.abs(power * ratios) < 1
    far, close = ~near, np.exp(weights[near])
    away = close * (np.expm1(power * ratios[near]) - power * rate * np.expm1(exponents[near]))
    beyond = np.exp(weights[far] + power * ratios[far]) - np.exp(weights[far])
    beyond -= power * rate * (np.exp(weights[far] + exponents[far]) - np.exp(weights[far]))
    return math.log1p(max(0.0, float(away.sum() + beyond.sum())))
