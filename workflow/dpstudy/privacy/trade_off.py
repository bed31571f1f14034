"""The trade-off curve of a guarantee: the power of an attacker who knows every record except one unit's.

A test that tells two neighbours apart has false positives a and true positives b. (epsilon, delta)-DP holds at each
point of a privacy profile, and each says b <= e^epsilon a + delta and 1 - a <= e^epsilon (1 - b) + delta (Wasserman and
Zhou 2010; Kairouz, Oh and Viswanath 2015): the smallest bound over all points counts. Of mu-Gaussian DP the curve is
known, b = Phi(Phi^-1(a) + mu) (Dong, Roth and Su 2022). Where a coin decides, a guess is right with probability
(1 - a + b)/2 <= (1 + delta(0))/2, Phi(mu/2) of mu-Gaussian DP.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from dpstudy.privacy import gaussian
from dpstudy.privacy.accounting import by_part, certify
from dpstudy.privacy.events import Event, pure, unamplified
from dpstudy.privacy.loss_distributions import pld_profile

DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
FALSE_POSITIVES = (0.01, 0.001)
_SAMPLED = (0.3, 0.1, 0.03, 0.01, 3e-3, *DELTAS)
_PROFILE = (*(k / 20 for k in range(19, 0, -1)), 0.03, 0.02, 0.01, 5e-3, 3e-3, 2e-3, *DELTAS)
_ROUNDING = 1e-9


def trade_off(events: Sequence[Event], delta: float, epsilon: float) -> dict:
    """The ledger's `trade_off`: points of the privacy profile, and bounds on attackers' true positives.

    Args:
        events: of a proved guarantee.
        delta, epsilon: that it states.

    Returns:
        {"mu" (None where it is not Gaussian DP exactly), "epsilons": {delta: an upper bound or None},
        "true_positives": {false positives: the most}, "right": how often a guess can be right}, numbers as text where
        they are keys.
    """
    return _curve(tuple(events), delta, epsilon)


@lru_cache(maxsize=1024)
def _curve(events: tuple[Event, ...], delta: float, epsilon: float) -> dict:
    mu, (epsilon_at, at_zero) = _mu(events), _profile(events, delta)
    asked = DELTAS if mu is not None else _SAMPLED if at_zero < 1 else _PROFILE
    bounds = {d: epsilon_at(d) for d in asked}
    bounds = {d: min(bound, epsilon) if d >= delta else bound for d, bound in bounds.items()}
    curve = {"mu": mu, "epsilons": {_key(d): bounds[d] if math.isfinite(bounds[d]) else None for d in DELTAS}}
    if mu is not None:
        caught = {a: _normal(_quantile(a) + mu) for a in FALSE_POSITIVES}
        right = _normal(mu / 2)
    else:
        points = [(d, e) for d, e in (bounds | {delta: epsilon, at_zero: 0.0}).items() if e < 700]
        caught = {a: min(_caught(a, e, d) for d, e in points) for a in FALSE_POSITIVES}
        right = min((math.exp(e) + d) / (1 + math.exp(e)) for d, e in points)
    up = {a: min(1.0, b * (1 + _ROUNDING)) for a, b in caught.items()}
    return curve | {"true_positives": {_key(a): up[a] for a in up}, "right": min(1.0, right * (1 + _ROUNDING))}


def most_found(ledger: Mapping, rate: float) -> float:
    """The highest true positive rate of any attack at a false positive rate, by a ledger's proved guarantee.

    >>> most_found({"epsilon": 1.0, "delta": 1e-5}, 0.01) <= math.e * 0.01 + 2e-5
    True
    """
    curve = ledger.get("trade_off", {"epsilons": {}, "right": 1.0})
    points = [(float(d), e) for d, e in curve["epsilons"].items() if e is not None]
    bounds = [_caught(rate, e, d) for d, e in (*points, (ledger["delta"], ledger["epsilon"])) if e < 700]
    bounds += [
        rate + 2 * curve["right"] - 1,
        *(b for a, b in curve.get("true_positives", {}).items() if float(a) >= rate),
    ]
    if curve.get("mu") is not None and 0 < rate < 1:
        bounds.append(_normal(_quantile(rate) + curve["mu"]) * (1 + _ROUNDING))
    return max(rate, min(1.0, *bounds))


def _caught(a: float, epsilon: float, delta: float) -> float:
    """The most true positives at a false positives of (epsilon, delta)-DP."""
    return min(1.0, math.exp(epsilon) * a + delta, 1 - math.exp(-epsilon) * (1 - a - delta))


def _mu(events: tuple[Event, ...]) -> float | None:
    """mu, where each unit has mu-Gaussian DP and there is nothing better to say."""
    if pure(events) or any(event.secret_order or event.trials for event in events):
        return None
    return max(map(gaussian.composed_mu, by_part(events))) if unamplified(events) else None


def _profile(events: tuple[Event, ...], delta: float) -> tuple[Callable[[float], float], float]:
    """delta -> an epsilon, and a delta at epsilon 0; privacy loss distributions are composed once."""
    plain = not pure(events) and not any(event.trials for event in events)

    def of(part: tuple[Event, ...]) -> tuple[Callable[[float], float], float]:
        if plain and not unamplified(part):
            return pld_profile(part, delta)
        return lambda d: certify(part, d).epsilon, 1.0 if not plain else gaussian.delta_of(
            0.0, gaussian.composed_mu(part)
        )

    profiles = [of(part) for part in by_part(events)]
    return lambda d: max(profile(d) for profile, _ in profiles), max(at_zero for _, at_zero in profiles)


def _key(number: float) -> str:
    return f"{number:g}"


def _normal(x: float) -> float:
    return math.erfc(-x * math.sqrt(0.5)) / 2


def _quantile(share: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(share)
