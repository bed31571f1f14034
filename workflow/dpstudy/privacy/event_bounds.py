"""Bounds on the epsilon of a ledger's events: closed forms without sampling, else an independent accountant's.

It needs the standard library alone, shares no code with the accountants of training, and is copied into bundles as it
is. The best of several runs is known to Renyi DP alone, and not to it.
"""

import math
from collections.abc import Callable, Mapping, Sequence

# Mechanisms whose releases are epsilon-DP with epsilon = 1 / noise multiplier; to add another takes a proof.
PURE = {"exponential"}

# (noise multiplier, sampling rate, count) of each release, delta -> (low, high): privacy/second_accountant.py
Bracket = Callable[[Sequence[tuple[float, float, int]], float], tuple[float, float]]


def bounds(events: Sequence[Mapping], delta: float, bracket: Bracket) -> tuple[float, float]:
    """(low, high) bounds on the epsilon of a ledger's `events`, composed; loose only if batches are often truncated.

    Raises:
        ValueError: no bound is known here, and why.
    """
    part_of = [event.get("params", {}).get("part") for event in events]
    parts = sorted({part for part in part_of if part}) or [None]  # each unit is in one part: the largest epsilon counts
    touching = [[e for e, its_part in zip(events, part_of, strict=True) if its_part in (None, part)] for part in parts]
    ends = [_of_unit(some, delta, bracket) for some in touching]
    return max(low for low, _ in ends), max(high for _, high in ends)


def _of_unit(events: Sequence[Mapping], delta: float, bracket: Bracket) -> tuple[float, float]:
    if unknown := {event["mechanism"] for event in events} - {"gaussian", "iterated-gaussian", *PURE}:
        raise ValueError(f"the mechanism {unknown.pop()} is not known to it")
    if not all(event["noise_multiplier"] > 0 for event in events):
        return math.inf, math.inf
    sampled = [event for event in events if event["sampling"] in ("poisson", "truncated-poisson")]
    choices = pure_epsilons(events)
    whole = [event for event in events if event not in sampled and event["mechanism"] not in PURE]
    if not sampled:
        exact = _solved(lambda epsilon: _delta(epsilon, choices, _squares(whole)), delta)
        return exact, exact
    if choices or any(event["sampling"] == "shuffle" for event in whole):
        raise ValueError("choices or shuffled batches beside Poisson samples are not known to it")
    releases = [(e["noise_multiplier"], e["sampling_rate"], e["count"]) for e in events]
    cut = sum(e["count"] * _tail(e) for e in sampled if e["sampling"] == "truncated-poisson")
    if not cut:
        return bracket(releases, delta)
    # Runs whose batches are cut differ from those whose are not with a probability of at most `cut`, either way.
    low, high = 0.0, bracket(releases, delta)[1]
    if high < 600 and (more := delta + (1 + math.exp(high)) * cut) < 1:
        low = bracket(releases, more)[0]
    guess = bracket(releases, delta / 2)[1]
    less = delta - (1 + math.exp(min(guess, 600))) * cut
    return low, bracket(releases, less)[1] if less >= delta / 2 else math.inf


def pure_epsilons(events: Sequence[Mapping]) -> list[float]:
    """The epsilon of each release of a pure-DP mechanism."""
    return [1 / e["noise_multiplier"] for e in events if e["mechanism"] in PURE for _ in range(e["count"])]


def _tail(event: Mapping) -> float:
    """A bound on the probability that a batch is cut: that of one unit too many, and a geometric series for more."""
    units, rate, most = event["params"]["units"] + 1, event["sampling_rate"], event["params"]["largest_batch"] + 1
    if most > units:
        return 0.0
    fall = (units - most) * rate / ((most + 1) * (1 - rate)) if rate < 1 else 1.0
    if fall >= 1:
        return 1.0
    ways = math.lgamma(units + 1) - math.lgamma(most + 1) - math.lgamma(units - most + 1)
    return 1.001 * math.exp(ways + most * math.log(rate) + (units - most) * math.log1p(-rate)) / (1 - fall)


def _squares(events: Sequence[Mapping]) -> list[tuple[float, float]]:
    """(share, mu^2) of the places that a unit may have, unknown to anybody; one, unless a secret order hides it."""
    secret = [e for e in events if e["mechanism"] == "iterated-gaussian" and e["params"]["order"] == "secret"]
    hidden = secret[0] if len(secret) == 1 == sum(e["mechanism"] == "iterated-gaussian" for e in events) else None
    total = 0.0
    for event in events:
        times, epochs = event["count"], event.get("params", {}).get("epochs")
        if epochs:  # of an iteration, whose later steps hide earlier ones, the worst place is the last batch
            times = (epochs - 1) * epochs / times + 1 if event["mechanism"] == "iterated-gaussian" else epochs
        total += 0.0 if event is hidden else times / event["noise_multiplier"] ** 2
    if not hidden:
        return [(1.0, total)]
    epochs, rate = hidden["params"]["epochs"], hidden["sampling_rate"]
    batches = hidden["count"] // epochs
    shares = [rate] * (batches - 1) + [1 - rate * (batches - 1)]
    worth = [((epochs - 1) / batches + 1 / left) / hidden["noise_multiplier"] ** 2 for left in range(batches, 0, -1)]
    return [(share, total + square) for share, square in zip(shares, worth, strict=True)]


def _delta(epsilon: float, choices: Sequence[float], squares: Sequence[tuple[float, float]]) -> float:
    """The exact delta of Gaussian releases (Balle and Wang 2018), beside choices that are randomised response at
    worst: their loss is eps, or -eps."""
    if choices:
        share = 1 / (1 + math.exp(-choices[0]))
        more, less = (_delta(epsilon + way * choices[0], choices[1:], squares) for way in (-1, 1))
        return share * more + (1 - share) * less
    total = 0.0
    for share, square in squares:
        if square:
            mu = math.sqrt(square)
            first, second = (_log_normal(-epsilon / mu + way * mu / 2) for way in (1, -1))
            total += share * math.exp(first) * -math.expm1(min(0.0, epsilon + second - first))
        else:
            total += share * -math.expm1(min(0.0, epsilon))
    return total


def _log_normal(x: float) -> float:
    """ln of the probability that a standard normal variable is below x."""
    if x > -30:
        return math.log(math.erfc(-x * math.sqrt(0.5)) / 2)
    return -x * x / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log1p(-1 / x**2 + 3 / x**4)


def _solved(delta_at: Callable[[float], float], delta: float) -> float:
    """The epsilon >= 0 at which a falling delta reaches the one that is asked."""
    low, high = 0.0, 1.0
    if delta_at(0.0) <= delta:
        return 0.0
    while delta_at(high) > delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high
