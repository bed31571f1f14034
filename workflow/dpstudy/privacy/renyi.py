"""Epsilon by Renyi DP (Mironov 2017); Poisson sampling by dp-accounting (Mironov, Talwar and Zhang 2019).

It has no floor in delta: any delta > 0 has a finite epsilon. But its divergences have one. At order a, dp-accounting
computes ln(A)/(a - 1), A >= 1 a sum of binomial terms whose logarithms have parts of up to a ln a and a ln(1/q); sums
and logarithms of that size are right to a few units of rounding (2^-53) only. Where noise is so large that ln A is
smaller than that, it comes out as anything around 0, and a divergence of 0 or less would be converted to epsilon 0.
Hence each divergence is raised by what rounding can have taken from it: 16 units of a release's parts, and (as A is
added up in a terms) 4 a units of itself. At a million releases this is below 1e-7.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from dpstudy.privacy import gaussian, selection
from dpstudy.privacy.events import TRUNCATED, Event, known_to_renyi, pure, unamplified

# Small epsilon needs large orders, large epsilon orders near 1 (below 1.7 the subsampled bound rarely converges).
RDP_ORDERS = (
    *(1.75 + x / 4 for x in range(38)),
    *range(12, 128),
    *(2**k + j * 2 ** (k - 2) for k in range(7, 14) for j in range(4)),
)
COARSE_ORDERS = tuple(sorted({round(2 ** (k / 2)) for k in range(2, 29)}))
SMALL_ORDER = 256
_GEOMETRIC = 1.0  # the shape of this negative binomial, as dp-accounting calls it
_PARTS, _SUMS = 2.0**-49, 2.0**-51  # 16 and 4 units of rounding


def rdp_epsilon(events: Sequence[Event], delta: float) -> float:
    """Epsilon by Renyi DP with the improved conversion (Canonne, Kamath and Steinke 2020), over RDP_ORDERS.

    Raises:
        ValueError: batches are cut to a size.
    """
    chosen = pure(events) or any(event.trials for event in events)
    if unamplified(events) and not chosen:
        return gaussian_rdp_epsilon(gaussian.composed_mu(events), delta)
    if not known_to_renyi(events):
        raise ValueError("Renyi DP has no bound for truncated batches")
    if not chosen:
        return _sampled_best(tuple(events), RDP_ORDERS, delta)[0]
    return converted(RDP_ORDERS, rdp_curve(events, RDP_ORDERS), delta)


def finest_rdp_epsilon(events: Sequence[Event], delta: float) -> float:
    """Epsilon by Renyi DP of Poisson-sampled releases, over all integer orders around the best large one.

    At some order the divergence of a sampled release rises steeply: between two of RDP_ORDERS epsilon would jump with
    the noise by as much as they differ, and a calibration would end as far below its target.
    """
    events = tuple(events)
    least, best = _sampled_best(events, RDP_ORDERS, delta)
    place = RDP_ORDERS.index(best)
    low, high = (int(RDP_ORDERS[min(max(0, index), len(RDP_ORDERS) - 1)]) for index in (place - 1, place + 1))
    if high - low <= 2:
        return least

    def at(order: int) -> float:
        return converted((order,), sampled_curve(events, (order,)), delta)

    while low < high:  # epsilon has one minimum
        middle = (low + high) // 2
        low, high = (low, middle) if at(middle) <= at(middle + 1) else (middle + 1, high)
    return min(least, at(low))


def gaussian_rdp_epsilon(mu: float, delta: float) -> float:
    """Epsilon by Renyi DP for mu-Gaussian-DP, in closed form: the divergence of order a is a mu^2/2."""
    best = min(
        order * mu**2 / 2 + math.log1p(-1 / order) - math.log(delta * order) / (order - 1) for order in RDP_ORDERS
    )
    return max(0.0, best)


def rough_epsilon(events: Sequence[Event], delta: float) -> float:
    """A fast upper bound on epsilon, at most about twice the certified one: Renyi DP at few orders.

    Of truncated batches it takes no notice: there it is no bound, but of the right size.
    """
    return _sampled_best(tuple(events), COARSE_ORDERS, delta)[0]


def rdp_curve(events: Sequence[Event], orders: Sequence[float]) -> list[float]:
    """The Renyi divergence bound at each of `orders` (all > 1), composed over `events`, which touch the same units.

    Events with trials are one run, of which the best is released.
    """
    single = tuple(event for event in events if not (event.trials or event.kind.pure))
    curve = list(sampled_curve(single, tuple(orders))) if single else [0.0] * len(orders)
    for epsilon in selection.pure_epsilons(events):
        chosen = [selection.choice_rdp(epsilon, order) for order in orders]
        curve = [value + more for value, more in zip(curve, _raised(chosen, 1, 0.0, orders), strict=True)]
    run = tuple(event for event in events if event.trials)
    if run:
        curve = [value + more for value, more in zip(curve, _best_run_curve(run, tuple(orders)), strict=True)]
    return curve


def converted(orders: Sequence[float], curve: Sequence[float] | np.ndarray, delta: float) -> float:
    """The epsilon at `delta` from Renyi divergences at `orders`, none below what rounding can have left of it."""
    from dp_accounting.rdp import compute_epsilon

    return float(compute_epsilon(orders, curve, delta)[0])


@lru_cache(maxsize=256)
def sampled_curve(events: tuple[Event, ...], orders: tuple[float, ...]) -> tuple[float, ...]:
    """The Renyi divergences of Gaussian releases, full-batch or Poisson-sampled, raised by their rounding error."""
    import logging

    from dp_accounting.rdp import RdpAccountant

    logging.getLogger("absl").setLevel(logging.ERROR)  # it warns of every order that it leaves out
    accountant = RdpAccountant(orders)
    for event in events:
        accountant.compose(dp_event(event), event.count)
    return _raised(accountant.rdp, *_parts(events), orders)


@lru_cache(maxsize=256)
def _best_run_curve(run: tuple[Event, ...], orders: tuple[float, ...]) -> tuple[float, ...]:
    """Of the best of several runs, their number geometric (Papernot and Steinke 2022, Theorem 2 with eta = 1)."""
    import dp_accounting
    from dp_accounting.dp_event import RepeatAndSelectDpEvent
    from dp_accounting.rdp import RdpAccountant

    means = {event.trials for event in run}
    if len(means) != 1:
        raise ValueError("events of several runs: they are not one run, repeated")
    [trials] = means
    once = [dp_accounting.SelfComposedDpEvent(dp_event(event), event.count) for event in run]
    best = RepeatAndSelectDpEvent(dp_accounting.ComposedDpEvent(once), trials, _GEOMETRIC)
    curve = RdpAccountant(orders).compose(best).rdp
    return _raised(curve, *_parts(run * 3), orders)  # to a run's divergence, twice another one is added


def _parts(events: Sequence[Event]) -> tuple[int, float]:
    """The number of releases, and the sum of ln(1/q) over them."""
    return (
        sum(event.count for event in events),
        sum(event.count * -math.log(event.sampling_rate) for event in events),
    )


def _raised(curve: Iterable[float], releases: int, logarithms: float, orders: Sequence[float]) -> tuple[float, ...]:
    """Divergences plus what rounding can have taken from them; infinite where they are no number."""

    def raised(value: float, order: float) -> float:
        if math.isnan(value):
            return math.inf
        return max(0.0, value) * (1 + _SUMS * order) + _PARTS * (releases * (2 + math.log(order)) + logarithms)

    return tuple(raised(float(value), order) for value, order in zip(curve, orders, strict=True))


def _sampled_best(events: tuple[Event, ...], orders: tuple[float, ...], delta: float) -> tuple[float, float]:
    """The least epsilon over ascending orders, and the order that has it; large ones only where they can have it.

    An order costs as many operations. (order - 1) epsilon(order) is convex (the divergence's part is, and so is the
    conversion's) and positive at 1, so that epsilon has one minimum: inside the small orders, it is that of all.
    """
    from dp_accounting.rdp import compute_epsilon

    small = tuple(order for order in orders if order <= SMALL_ORDER)
    epsilon, best = compute_epsilon(small, sampled_curve(events, small), delta)
    if best == small[-1]:
        epsilon, best = compute_epsilon(orders, sampled_curve(events, orders), delta)
    return float(epsilon), best


def dp_event(event: Event):
    """A Gaussian release as dp-accounting's event; the truncation of batches is ignored."""
    import dp_accounting

    release = dp_accounting.GaussianDpEvent(event.noise_multiplier)
    if event.sampling in ("poisson", TRUNCATED):
        return dp_accounting.PoissonSampledDpEvent(event.sampling_rate, release)
    return release
