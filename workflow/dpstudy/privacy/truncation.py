"""Truncated Poisson batches, accounted as untruncated ones, with the correction of delta for truncation.

Let M be a run of T adaptive releases, each of a Poisson batch (rate q) of which a random subset of `largest` units is
taken if it is larger, and P the same run of batches that are not cut. If P is (epsilon, delta_0)-DP for adding or
removing a unit, then M is (epsilon, delta)-DP between data sets of at most n + 1 units for

    delta = delta_0 + (1 + e^epsilon) tau,    tau = T P[Bin(n + 1, q) > largest].

Proof. On one data set of k <= n + 1 units, run M and P with the same batches and the same noise. Up to the first batch
of more than `largest` units both release the same, so that all their releases are the same unless there is such a
batch. Who takes part does not depend on what was released: a batch has Bin(k, q) units, which is more than `largest`
with no greater probability than Bin(n + 1, q) is, so that one of T batches is with probability at most tau. Hence
|Pr[M in S] - Pr[P in S]| <= tau for every set S of outcomes. For neighbours D, D':

    Pr[M(D) in S] <= Pr[P(D) in S] + tau <= e^epsilon Pr[P(D') in S] + delta_0 + tau
                  <= e^epsilon (Pr[M(D') in S] + tau) + delta_0 + tau.

Releases of other kinds in the same run are part of M and P alike; for events of several sizes, tau is their sum. If the
run is made K times, K random and secret but independent of who takes part, its batches are E[K] T in the mean.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from dpstudy.privacy.events import TRUNCATED, Event

_ROUNDING = 2.0**-50  # 8 units


def whole_batches(events: Sequence[Event]) -> tuple[Event, ...]:
    """The events with untruncated Poisson batches."""
    return tuple(
        replace(event, sampling="poisson", largest=None, units=None) if event.sampling == TRUNCATED else event
        for event in events
    )


def coupled_epsilon(epsilon_at: Callable[[float], float], events: Sequence[Event], delta: float) -> float:
    """An epsilon for which this module's inequality is verified; infinite where none is found.

    Args:
        epsilon_at: delta_0 -> an epsilon of the run whose batches are not cut; the larger delta_0, the smaller.
        events: those of the run whose batches are cut.
    """
    tau = cut_probability(events)

    def left(epsilon: float) -> float:
        """What is left of delta for delta_0."""
        return delta - (1 + math.exp(epsilon)) * tau * (1 + 1e-12) if epsilon < 700 else -math.inf

    if left(0.0) < delta / 2:
        return math.inf  # before an accountant is asked
    epsilon = epsilon_at(delta / 2)
    if left(epsilon) < delta / 2:
        return math.inf
    smaller = epsilon_at(left(epsilon))
    return smaller if left(smaller) >= left(epsilon) else epsilon


def cut_probability(events: Sequence[Event]) -> float:
    """tau, an upper bound on the probability that any batch of the run is truncated.

    >>> cut = Event("g", "gaussian", 1.0, 1.0, 1000, TRUNCATED, 0.02, largest=1200, units=50_000)
    >>> f"{cut_probability([cut]):.2g}"
    '2.6e-07'
    """
    return sum(
        event.count * (event.trials or 1) * math.exp(log_tail(event.largest, event.units + 1, event.sampling_rate))
        for event in events
        if event.largest is not None and event.units is not None
    )


def log_tail(largest: int, units: int, rate: float) -> float:
    """An upper bound on ln P[Bin(units, rate) > largest], tight where that is small; at most 0.

    Probabilities of k + 1 and k have the ratio r_k = (units - k) rate / ((k + 1) (1 - rate)), which falls with k: the
    tail is at most its first probability times 1 + r + r^2 + ..., r = r_{largest + 1}. Logarithms do not underflow.
    """
    first = largest + 1
    if first > units:
        return -math.inf
    ratio = (units - first) * rate / ((first + 1) * (1 - rate)) if rate < 1 else math.inf
    if ratio >= 1:
        return 0.0
    logarithm = (
        math.lgamma(units + 1)
        - math.lgamma(first + 1)
        - math.lgamma(units - first + 1)
        + first * math.log(rate)
        + (units - first) * math.log1p(-rate)
        - math.log1p(-ratio)
    )
    return min(0.0, logarithm + _ROUNDING * (1 + math.lgamma(units + 2)))  # no part of it is larger
