"""Privacy cost of private selection: the exponential mechanism on held-out scores, and repeat and select.

A choice is the exponential mechanism (McSherry and Talwar 2007): candidate j is chosen with probability proportional to
exp(eps u_j). Where a unit can only add to scores, and at most 1 to each, a choice is eps-DP, without the usual factor
two: with and without the unit, each weight differs by a factor in [1, e^eps], and so does their sum. Whatever is eps-DP
is dominated by randomised response, whose privacy loss is eps with probability e^eps/(1 + e^eps), else -eps (Kairouz,
Oh and Viswanath 2015, Theorem 3.4); with a Gaussian release beside it, the exact delta is the mean of the Gaussian's
over that loss.

The best of a secret, geometric number of runs costs more than one of them, and far less than all (Papernot and Steinke
2022, Theorem 2): dp-accounting's repeat-and-select event, in Renyi DP. (With a Poisson number, Theorem 6, the same runs
cost more from ten on, and there might be none.)
"""

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal, localcontext

from dpstudy.privacy import gaussian
from dpstudy.privacy.events import Event

MOST_CHOICES = 8  # whose losses are combined exactly
_WORD_BITS, _DIGITS = 256, 90  # bits of a choice's random number, and decimal digits of the arithmetic that uses it


def pure_epsilons(events: Sequence[Event]) -> list[float]:
    """The eps of each release of a pure-DP mechanism among `events`."""
    return [1 / event.noise_multiplier for event in events if event.kind.pure for _ in range(event.count)]


def delta_of(epsilon: float, mu: float, choices: Sequence[float]) -> float:
    """The exact delta at `epsilon` of mu-Gaussian-DP composed with choices that are eps-DP, eps in `choices`.

    Raises:
        ValueError: more choices than are combined exactly.
    """
    if len(choices) > MOST_CHOICES:
        raise ValueError(f"{len(choices)} choices: at most {MOST_CHOICES} are combined exactly")
    total = 0.0
    for signs in itertools.product((1, -1), repeat=len(choices)):
        chance = math.prod(1 / (1 + math.exp(-sign * eps)) for sign, eps in zip(signs, choices, strict=True))
        left = epsilon - sum(sign * eps for sign, eps in zip(signs, choices, strict=True))
        total += chance * (gaussian.delta_of(left, mu) if mu else max(0.0, -math.expm1(left)))
    return total


def epsilon_of(mu: float, choices: Sequence[float], delta: float) -> float:
    """The smallest epsilon >= 0 at which `delta_of` is at most `delta`, rounded up.

    >>> round(epsilon_of(0.0, [1.0], 1e-9), 6)
    1.0
    """
    high = sum(choices) + gaussian.epsilon_of(mu, delta)
    if delta_of(0.0, mu, choices) <= delta:
        return 0.0
    return gaussian.turn(lambda epsilon: delta_of(epsilon, mu, choices) <= delta, 0.0, high)[1]


def largest_choice(mu: float, target: float, delta: float) -> float:
    """The largest eps of a choice that, composed with mu-Gaussian-DP, is (target, delta)-DP; 0 if none is."""
    if delta_of(target, mu, [0.0]) > delta:
        return 0.0
    return gaussian.turn(lambda choice: delta_of(target, mu, [choice]) > delta, 0.0, target)[0]


def choice_rdp(epsilon: float, order: float) -> float:
    """The Renyi divergence of randomised response, an upper bound for any eps-DP mechanism."""
    yes, no = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    first, second = order * yes + (1 - order) * no, order * no + (1 - order) * yes
    return (first + math.log1p(math.exp(second - first))) / (order - 1)


def choose(scores: Sequence[float], epsilon: float, word: int) -> int:
    """The index chosen with probability proportional to exp(epsilon x score), from a uniform 256-bit `word`.

    In decimal arithmetic of 90 digits: rounded floating-point noise could tell more of the scores than the mechanism
    does. Each probability is right to 2^-256. An infinite epsilon takes the best, the first of equals.
    """
    best = max(range(len(scores)), key=scores.__getitem__)
    if math.isinf(epsilon):
        return best
    with localcontext() as context:
        context.prec = _DIGITS
        rate = Decimal(epsilon)
        weights = [(rate * (Decimal(score) - Decimal(scores[best]))).exp() for score in scores]
        left = sum(weights) * Decimal(word) / Decimal(2**_WORD_BITS)
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return index
    return best
