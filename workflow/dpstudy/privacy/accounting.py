"""From events to epsilon, by several accountants.

`certify` is the one way to an epsilon: exact Gaussian composition where no event is subsampled, privacy loss
distributions (PLD) otherwise, Renyi DP for the best of several runs. RDP and zCDP stand beside it as independent,
looser bounds. Where events touch one part of the records only, each unit is in one part, and the worse part counts.
dp-accounting is imported only where a subsampled event needs it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from dpstudy.privacy import gaussian, iteration, selection
from dpstudy.privacy.events import EXPONENTIAL, ITERATED, TRUNCATED, Event, known_to_renyi, unamplified, unproved

# Small epsilon needs large orders, large epsilon orders near 1 (below 1.7 the subsampled bound rarely converges).
RDP_ORDERS = (
    *(1.75 + x / 4 for x in range(38)),
    *range(12, 128),
    *(2**k + j * 2 ** (k - 2) for k in range(7, 14) for j in range(4)),
)
_GEOMETRIC = 1.0  # the shape of this negative binomial, as dp-accounting calls it
_COARSE_ORDERS = tuple(sorted({round(2 ** (k / 2)) for k in range(2, 29)}))
_SMALL_ORDER = 256
_SMALL_DELTA = 1e-6  # where only the size of epsilon is asked for
_SMALLEST_ROUGH = 1e-4  # bounds the memory of a grid
_PLD_RELATIVE_INTERVAL = 0.5e-4  # of a bound that can be twice the epsilon


@dataclass(frozen=True)
class Certificate:
    """A certified epsilon (infinite where there is no guarantee), who certified it, and the other bounds.

    `epsilon_by` maps exact, pld, rdp, zcdp to a bound, or to None where that accountant is undefined
    or was not asked.
    """

    epsilon: float
    accountant: str
    adjacency: str
    epsilon_by: dict[str, float | None]


def certify(events: Sequence[Event], delta: float, complete: bool = False) -> Certificate:
    """Certify the epsilon of `events` composed adaptively.

    With `complete`, every accountant that is defined is asked; without, only the certifying one (and the
    free closed forms).

    >>> steps = Event("gradients", "gaussian", 1.0, 1.0, count=100, sampling="poisson", sampling_rate=0.01)
    >>> found = certify([steps], 1e-5)
    >>> round(found.epsilon, 3), found.accountant
    (0.718, 'PLD (dp-accounting)')
    """
    events = tuple(events)
    if any(event.part for event in events):
        return _worst([certify(found, delta, complete) for found in by_part(events)])
    by: dict[str, float | None] = {"exact": None, "pld": None, "rdp": None, "zcdp": None}
    shuffled = any(event.sampling == "shuffle" for event in events)
    adjacency = "zero-out" if shuffled else "add-remove-one"
    if unproved(events) or any(event.noise_multiplier == 0 for event in events):
        return Certificate(math.inf, "none", adjacency, by)
    chosen = any(event.mechanism == EXPONENTIAL for event in events)
    if any(event.trials for event in events) or (chosen and not unamplified(events)):
        by["rdp"] = epsilon = rdp_epsilon(events, delta)
        return Certificate(epsilon, "RDP (dp-accounting)", adjacency, by)
    if chosen:
        mu = gaussian.composed_mu(event for event in events if event.mechanism != EXPONENTIAL)
        by["exact"] = epsilon = selection.epsilon_of(mu, selection.pure_epsilons(events), delta)
        return Certificate(epsilon, "exact pure and Gaussian DP" if mu else "pure DP", adjacency, by)
    if unamplified(events):
        by["exact"] = epsilon = gaussian.epsilon_of(gaussian.composed_mu(events), delta)
        by["zcdp"] = zcdp_epsilon(events, delta)
        by["rdp"] = _gaussian_rdp_epsilon(gaussian.composed_mu(events), delta)
        if complete and not shuffled:
            by["pld"] = pld_epsilon(events, delta)
        if any(event.mechanism == ITERATED for event in events):
            return _certify_iterated(events, delta, epsilon, by)
        return Certificate(epsilon, "exact Gaussian DP", adjacency, by)
    if shuffled:
        raise ValueError("shuffled and Poisson-sampled events have no common adjacency: they cannot be composed")
    by["pld"] = epsilon = pld_epsilon(events, delta)
    if complete and known_to_renyi(events):
        by["rdp"] = rdp_epsilon(events, delta)
    return Certificate(epsilon, "PLD (dp-accounting)", adjacency, by)


def by_part(events: Sequence[Event]) -> list[tuple[Event, ...]]:
    """What touches the units of each part of the records: all of it, where no event names a part."""
    parts: list[str | None] = [*sorted({event.part for event in events if event.part})] or [None]
    return [tuple(replace(event, part=None) for event in events if event.part in (None, part)) for part in parts]


def _worst(found: Sequence[Certificate]) -> Certificate:
    """The certificate of all units from those of the parts that they are in."""
    by = {name: [certificate.epsilon_by[name] for certificate in found] for name in found[0].epsilon_by}
    return Certificate(
        max(certificate.epsilon for certificate in found),
        "; ".join(dict.fromkeys(certificate.accountant for certificate in found)),
        max(certificate.adjacency for certificate in found),
        {name: _largest(values) for name, values in by.items()},
    )


def _largest(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None


def _certify_iterated(
    events: tuple[Event, ...], delta: float, worst: float, by: dict[str, float | None]
) -> Certificate:
    """What the worst protected record has; with a secret order every record has the mean over positions."""
    secret = sum(event.secret_order for event in events) == 1 == sum(event.mechanism == ITERATED for event in events)
    if not secret:  # several orders: the worst position in each is a bound too
        return Certificate(worst, "Gaussian DP by iteration, worst record", "zero-out", by)
    by["exact"] = mean = iteration.secret_order_epsilon(events, delta)
    return Certificate(mean, "Gaussian DP by iteration, secret order", "zero-out", by)


def zcdp_epsilon(events: Sequence[Event], delta: float) -> float:
    """rho + 2 sqrt(rho ln(1/delta)), rho = mu^2/2 (Bun and Steinke 2016, Proposition 1.3); full batch only."""
    if not unamplified(events):
        raise ValueError("zCDP does not profit from subsampling")
    rho = gaussian.composed_mu(events) ** 2 / 2
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def rdp_epsilon(events: Sequence[Event], delta: float) -> float:
    """Renyi DP with the improved conversion (Canonne, Kamath and Steinke 2020), over RDP_ORDERS."""
    chosen = any(event.trials or event.mechanism == EXPONENTIAL for event in events)
    if unamplified(events) and not chosen:
        return _gaussian_rdp_epsilon(gaussian.composed_mu(events), delta)
    if not known_to_renyi(events):
        raise ValueError("Renyi DP has no bound for truncated batches")
    if not chosen:
        return _sampled_rdp_epsilon(events, RDP_ORDERS, delta)
    from dp_accounting.rdp import compute_epsilon

    return float(compute_epsilon(RDP_ORDERS, rdp_curve(events, RDP_ORDERS), delta)[0])


def _gaussian_rdp_epsilon(mu: float, delta: float) -> float:
    """The same for mu-Gaussian-DP, whose divergence of order a is a mu^2/2: a closed form, without dp-accounting."""
    best = min(
        order * mu**2 / 2 + math.log1p(-1 / order) - math.log(delta * order) / (order - 1) for order in RDP_ORDERS
    )
    return max(0.0, best)


def rough_epsilon(events: Sequence[Event], delta: float) -> float:
    """An upper bound on epsilon in milliseconds, at most about twice the certified one: Renyi DP at few orders.

    Of truncated batches it takes no notice: there it is no bound, but of the right size.
    """
    return _sampled_rdp_epsilon(events, _COARSE_ORDERS, delta)


def rdp_curve(events: Sequence[Event], orders: Sequence[float]) -> list[float]:
    """The Renyi divergence bound at each of `orders` (all > 1), composed over `events`, which touch the same units.

    Events with trials are one run, of which the best is released.
    """
    single = [event for event in events if not event.trials and event.mechanism != EXPONENTIAL]
    curve = [float(value) for value in _rdp_accountant(single, orders).rdp] if single else [0.0] * len(orders)
    for epsilon in selection.pure_epsilons(events):
        curve = [value + selection.choice_rdp(epsilon, order) for value, order in zip(curve, orders, strict=True)]
    run = tuple(event for event in events if event.trials)
    if run:
        curve = [value + more for value, more in zip(curve, _best_run_rdp(run, tuple(orders)), strict=True)]
    return curve


@lru_cache(maxsize=256)
def _best_run_rdp(run: tuple[Event, ...], orders: tuple[float, ...]) -> list[float]:
    """Of the best of several runs, their number geometric (Papernot and Steinke 2022, Theorem 2 with eta = 1)."""
    import dp_accounting
    from dp_accounting.dp_event import RepeatAndSelectDpEvent
    from dp_accounting.rdp import RdpAccountant

    means = {event.trials for event in run}
    if len(means) != 1:
        raise ValueError("events of several runs: they are not one run, repeated")
    [trials] = means
    once = [dp_accounting.SelfComposedDpEvent(_dp_event(event, truncated=False), event.count) for event in run]
    best = RepeatAndSelectDpEvent(dp_accounting.ComposedDpEvent(once), trials, _GEOMETRIC)
    return [float(value) for value in RdpAccountant(orders).compose(best).rdp]


def _sampled_rdp_epsilon(events: Sequence[Event], orders: Sequence[float], delta: float) -> float:
    """The least epsilon over ascending orders, large ones only where they can have it.

    An order costs as many operations. (order - 1) epsilon(order) is convex (the divergence's part is, and so is the
    conversion's) and positive at 1, so that epsilon has one minimum: inside the small orders, it is that of all.
    """
    small = tuple(order for order in orders if order <= _SMALL_ORDER)
    epsilon, best = _rdp_accountant(events, small).get_epsilon_and_optimal_order(delta)
    if best == small[-1]:
        epsilon = _rdp_accountant(events, orders).get_epsilon(delta)
    return float(epsilon)


def _rdp_accountant(events: Sequence[Event], orders: Sequence[float]):
    import logging

    from dp_accounting.rdp import RdpAccountant

    logging.getLogger("absl").setLevel(logging.ERROR)  # it warns of every order that it leaves out
    accountant = RdpAccountant(orders)
    for event in events:
        accountant.compose(_dp_event(event, truncated=False), event.count)
    return accountant


def pld_epsilon(events: Sequence[Event], delta: float) -> float:
    """Privacy loss distributions, discretised pessimistically at no more than 1e-4 of the epsilon.

    With a coarser grid the bound is still valid but can exceed RDP's at small epsilon.
    """
    return _pld_epsilon(tuple(events), delta, _PLD_RELATIVE_INTERVAL)


def coarse_epsilon(events: Sequence[Event], delta: float) -> float:
    """The same bound on a grid fifty times coarser: a few percent above it, and much sooner there."""
    return _pld_epsilon(tuple(events), delta, 50 * _PLD_RELATIVE_INTERVAL)


def sampled_epsilons(events: Sequence[Event]) -> Callable[[float], float]:
    """delta -> the epsilon by privacy loss distributions, which are composed once, on the coarser grid."""
    from dp_accounting.pld import PLDAccountant

    interval = 50 * _PLD_RELATIVE_INTERVAL * max(rough_epsilon(events, _SMALL_DELTA), _SMALLEST_ROUGH)
    accountant = PLDAccountant(value_discretization_interval=interval)
    for event in events:
        accountant.compose(_dp_event(event), event.count)
    return lambda delta: float(accountant.get_epsilon(delta))


@lru_cache(maxsize=1024)
def _pld_epsilon(events: tuple[Event, ...], delta: float, relative_interval: float) -> float:
    from dp_accounting.pld import PLDAccountant

    rough = rough_epsilon(events, delta)
    if rough == 0:
        return 0.0  # so little privacy loss that delta covers it: no grid is fine enough, and none is needed
    accountant = PLDAccountant(value_discretization_interval=relative_interval * max(rough, _SMALLEST_ROUGH))
    for event in events:
        accountant.compose(_dp_event(event), event.count)
    return float(accountant.get_epsilon(delta))


def _dp_event(event: Event, truncated: bool = True):
    import dp_accounting

    release = dp_accounting.GaussianDpEvent(event.noise_multiplier)
    if event.sampling == "poisson" or (event.sampling == TRUNCATED and not truncated):
        return dp_accounting.PoissonSampledDpEvent(event.sampling_rate, release)
    if event.units is not None:  # TRUNCATED
        # The size is that of the larger of two neighbours, hence units + 1. Smaller data sets lose less, as long as
        # batches are not cut below their expected size, which Event demands.
        return dp_accounting.TruncatedSubsampledGaussianDpEvent(
            event.units + 1, event.sampling_rate, event.largest, event.noise_multiplier
        )
    return release
