"""From events to epsilon, by several accountants.

`certify` is the one way to an epsilon: exact Gaussian composition where no event is subsampled; of subsampled ones the
smallest bound of privacy loss distributions (PLD), Renyi DP and what they would cost without sampling, each where it is
valid; Renyi DP for the best of several runs. RDP and zCDP stand beside it as independent, looser bounds. Where events
touch one part of the records only, each unit is in one part, and the worse part counts.
dp-accounting is imported only where a subsampled event needs it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dpstudy.core.errors import StudyError
from dpstudy.privacy import gaussian, iteration, selection
from dpstudy.privacy.events import EXPONENTIAL, ITERATED, TRUNCATED, Event, known_to_renyi, unamplified, unproved
from dpstudy.privacy.loss_distributions import coarse_epsilon, pld_epsilon, pld_floor
from dpstudy.privacy.renyi import finest_rdp_epsilon, gaussian_rdp_epsilon, rdp_epsilon
from dpstudy.privacy.truncation import coupled_epsilon, whole_batches

PLD, RDP = "PLD (dp-accounting)", "RDP (dp-accounting)"
UNSAMPLED = "exact Gaussian DP, sampling ignored"
COUPLED = ", truncation by coupling"
SMALLEST_DELTA = 1e-300
_EXACT = 1e-3  # of delta: an error that moves no epsilon by as much
_SMALL_DELTA = 1e-6  # where only the size of epsilon is asked for


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

    With `complete`, every accountant that is defined is asked; without, only those that may be the certifying one
    (and the free closed forms).

    Raises:
        StudyError: delta is so small that numbers of its size have fewer digits.

    >>> steps = Event("gradients", "gaussian", 1.0, 1.0, count=100, sampling="poisson", sampling_rate=0.01)
    >>> found = certify([steps], 1e-5)
    >>> round(found.epsilon, 3), found.accountant
    (0.718, 'PLD (dp-accounting)')
    """
    events = tuple(events)
    if delta < SMALLEST_DELTA:
        raise StudyError(
            f"delta {delta!r}: must be at least {SMALLEST_DELTA}, below which no accountant's arithmetic holds"
        )
    if any(event.part for event in events):
        return _worst([certify(found, delta, complete) for found in by_part(events)])
    by: dict[str, float | None] = {"exact": None, "pld": None, "rdp": None, "zcdp": None}
    shuffled = any(event.sampling == "shuffle" for event in events)
    adjacency = "zero-out" if shuffled else "add-remove-one"
    if unproved(events) or any(event.noise_multiplier == 0 for event in events):
        return Certificate(math.inf, "none", adjacency, by)
    chosen = any(event.mechanism == EXPONENTIAL for event in events)
    if any(event.trials for event in events) or (chosen and not unamplified(events)):
        if known_to_renyi(events):
            by["rdp"] = epsilon = rdp_epsilon(events, delta)
            return Certificate(epsilon, RDP, adjacency, by)
        whole = whole_batches(events)
        by["rdp"] = epsilon = coupled_epsilon(lambda left: rdp_epsilon(whole, left), events, delta)
        return Certificate(epsilon, RDP + COUPLED, adjacency, by)
    if chosen:
        mu = gaussian.composed_mu(event for event in events if event.mechanism != EXPONENTIAL)
        by["exact"] = epsilon = selection.epsilon_of(mu, selection.pure_epsilons(events), delta)
        return Certificate(epsilon, "exact pure and Gaussian DP" if mu else "pure DP", adjacency, by)
    if unamplified(events):
        by["exact"] = epsilon = gaussian.epsilon_of(gaussian.composed_mu(events), delta)
        by["zcdp"] = zcdp_epsilon(events, delta)
        by["rdp"] = gaussian_rdp_epsilon(gaussian.composed_mu(events), delta)
        if complete and not shuffled:
            by["pld"] = _smallest({PLD: pld_epsilon(events, delta)}, PLD)
        if any(event.mechanism == ITERATED for event in events):
            return _certify_iterated(events, delta, epsilon, by)
        return Certificate(epsilon, "exact Gaussian DP", adjacency, by)
    if shuffled:
        raise ValueError("shuffled and Poisson-sampled events have no common adjacency: they cannot be composed")
    bounds = _sampled_bounds(events, delta, pld_epsilon, delta, complete)
    accountant = min(bounds, key=lambda name: bounds[name])
    by["pld"], by["rdp"] = (_smallest(bounds, name) for name in (PLD, RDP))
    return Certificate(bounds[accountant], accountant, adjacency, by)


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


def _sampled_bounds(
    events: tuple[Event, ...], delta: float, pld: Callable[..., float], sized: float, complete: bool = False
) -> dict[str, float]:
    """What accountants bound the epsilon of sampled releases by, infinity where one has no bound at this delta.

    UNSAMPLED: a sampled release is a mixture of the whole release and of one without the unit, so that by the joint
    convexity of the hockey-stick divergence the whole release dominates it. (In a batch that is cut, a unit may take
    another one's place, which moves the sum by twice its sensitivity.) It is the smallest where q is close to 1, and
    where delta is so small that Renyi DP would need larger orders.

    Args:
        pld: of privacy loss distributions, on a grid made for the epsilon at the delta `sized`.
        complete: ask Renyi DP also where privacy loss distributions are as good as exact, and it can only be looser.
    """
    bounds = {PLD: pld(events, delta, sized)}
    if not known_to_renyi(events):
        whole = whole_batches(events)
        bounds[PLD + COUPLED] = coupled_epsilon(lambda left: pld(whole, left, sized), events, delta)
        if math.isinf(bounds[PLD]):
            bounds[RDP + COUPLED] = coupled_epsilon(lambda left: finest_rdp_epsilon(whole, left), events, delta)
    elif complete or pld_floor(events) > _EXACT * delta:
        bounds[RDP] = finest_rdp_epsilon(events, delta)
    unsampled = [event.scaled(0.5) if event.sampling == TRUNCATED else event for event in events]
    bounds[UNSAMPLED] = gaussian.epsilon_of(gaussian.composed_mu(unsampled), delta)
    return bounds


def _smallest(bounds: dict[str, float], accountant: str) -> float | None:
    return min(
        (value for name, value in bounds.items() if name.startswith(accountant) and math.isfinite(value)), default=None
    )


def sampled_epsilons(events: Sequence[Event]) -> Callable[[float], float]:
    """delta -> the epsilon of sampled events; privacy loss distributions are composed once, on a coarser grid."""
    return lambda delta: min(_sampled_bounds(tuple(events), delta, coarse_epsilon, _SMALL_DELTA).values())
