"""Epsilon by privacy loss distributions (PLD) of dp-accounting, and the delta below which they are unreliable.

dp-accounting discretises pessimistically, but adds up rounded numbers. What that can take from a delta (u is 2^-53, T
the number of releases, N the length of the Fourier transforms, f that of one release's probabilities, which sum to 1):

- Tails of up to 1e-15 a composition are put on an infinite loss. That errs on the safe side; below it no epsilon is
  finite.
- An entry of f is off by independent roundings, 0.6 sqrt(log2 N) u in the mean square (Schatzman 1996), less than 3 u,
  and one of f^T by T times that where it matters, where |f| is close to 1. A delta is a sum of the inverse transform of
  f^T with weights 1 - exp(epsilon - loss), which rise with the loss and stay below 1, so that entry k bears on it by at
  most 1/(2 k) (Abel's summation). It is off by less than 5 u T in the mean square.
- The probabilities come from the deltas of a single release, each a difference of two probabilities, right to a few u.
  If no delta of one release is off by more than h, none of T releases is by more than T h.

So 64 u a release, 2^-47, is more than ten standard deviations. (Long double arithmetic finds it off by up to u T.)
`pld_epsilon` asks for a delta that is smaller by as much and is infinite where that leaves nothing: below 8e-14 at 10
releases, below 8e-12 at 1000.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from dpstudy.privacy.events import TRUNCATED, Event
from dpstudy.privacy.inverse_losses import all_at_once
from dpstudy.privacy.renyi import dp_event, rough_epsilon

_ERROR = 2.0**-47  # error in delta, per release
_RELATIVE_INTERVAL = 0.5e-4  # relative to a bound that may be twice the epsilon
_COARSE = 50 * _RELATIVE_INTERVAL
_SMALLEST_ROUGH = 1e-4  # bounds the memory of a grid
_SMALL_ROUGH = 0.01


def pld_floor(events: Sequence[Event]) -> float:
    """A bound on the rounding error of delta for these composed events; an event's full-batch releases count as one."""
    return _ERROR * sum(1 + (event.count if event.sampling in ("poisson", TRUNCATED) else 1) for event in events)


def pld_epsilon(events: Sequence[Event], delta: float, sized: float | None = None) -> float:
    """Epsilon by pessimistic discretisation at 1e-4 of it or finer; infinite at a delta below `pld_floor`.

    With a coarser grid the bound is still valid but can exceed RDP's at small epsilon.

    Args:
        sized: the delta whose epsilon the grid is made for, where it is to be the same for several.
    """
    return _epsilon(tuple(events), delta, delta if sized is None else sized, _RELATIVE_INTERVAL)


def coarse_epsilon(events: Sequence[Event], delta: float, sized: float | None = None) -> float:
    """The same bound on a grid fifty times coarser: a few percent looser, and much faster."""
    return _epsilon(tuple(events), delta, delta if sized is None else sized, _COARSE)


def pld_profile(events: Sequence[Event], delta: float) -> tuple[Callable[[float], float], float]:
    """A function delta -> epsilon, and the delta at epsilon 0, from one composition on the grid for `delta`."""
    events = tuple(events)
    rough = rough_epsilon(events, delta) or _SMALL_ROUGH
    composed, floor = _composed(events, _RELATIVE_INTERVAL * max(rough, _SMALLEST_ROUGH)), pld_floor(events)
    at_zero = min(1.0, float(composed.get_delta(0.0)) + floor)
    return lambda asked: float(composed.get_epsilon(asked - floor)) if asked > floor else math.inf, at_zero


@lru_cache(maxsize=1024)
def _epsilon(events: tuple[Event, ...], delta: float, sized: float, relative_interval: float) -> float:
    left = delta - pld_floor(events)
    if left <= 0:
        return math.inf
    rough = rough_epsilon(events, sized)
    if rough_epsilon(events, left) == 0:  # so little privacy loss that delta covers it: no grid is fine enough,
        if all(event.sampling != TRUNCATED for event in events):
            return 0.0  # and none is needed; of batches that are cut rough_epsilon is no bound, so that
        rough = _SMALL_ROUGH  # a coarse one does
    return float(_composed(events, relative_interval * max(rough, _SMALLEST_ROUGH)).get_epsilon(left))


@lru_cache(maxsize=2)
def _composed(events: tuple[Event, ...], interval: float):
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(value_discretization_interval=interval)
    with all_at_once():
        for event in events:
            accountant.compose(_dp_event(event), event.count)
    return accountant


def _dp_event(event: Event):
    if event.units is None:
        return dp_event(event)
    import dp_accounting

    # The size is that of the larger of two neighbours, hence units + 1. Smaller data sets lose less, as long as
    # batches are not cut below their expected size, which Event demands.
    return dp_accounting.TruncatedSubsampledGaussianDpEvent(
        event.units + 1, event.sampling_rate, event.largest, event.noise_multiplier
    )
