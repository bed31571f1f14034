"""The accountants: the events that each supports, and its bounds on epsilon; `certify` (accounting.py) asks them all.

One of your own is a class with `key`, `supports` and `bounds`, added to ACCOUNTANTS: its bound joins those of the
others, of which the least counts, so that it must be a proof for every event that it supports.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from dpstudy.privacy import gaussian, iteration, selection
from dpstudy.privacy.events import TRUNCATED, Event, known_to_renyi, pure, unamplified
from dpstudy.privacy.loss_distributions import coarse_epsilon, pld_epsilon, pld_floor
from dpstudy.privacy.renyi import finest_rdp_epsilon, gaussian_rdp_epsilon, rdp_epsilon
from dpstudy.privacy.truncation import coupled_epsilon, whole_batches

PLD, RDP = "PLD (dp-accounting)", "RDP (dp-accounting)"
UNSAMPLED = "exact Gaussian DP, sampling ignored"
COUPLED = ", truncation by coupling"
_EXACT = 1e-3  # of delta: an error that moves no epsilon by as much
_SMALL_DELTA = 1e-6  # for an approximate epsilon, on a coarser grid


class Accountant(Protocol):
    """The interface of accountants, which bound the epsilon of composed events.

    Attributes:
        key: of its bound in a ledger's `epsilon_by`; empty: it has no place there.
    """

    key: str

    def supports(self, events: Sequence[Event]) -> bool:
        """Whether it bounds these events together; all have noise, a known sensitivity and the same part."""

    def bounds(self, events: Sequence[Event], delta: float, known: Mapping[str, float], complete: bool) -> dict:
        """{name of the proof: epsilon}; infinite where there is no bound at this delta.

        Args:
            known: the bounds of those that were asked before, by name.
            complete: compute it also where one of `known` is as good as exact; without, {} may be the answer.
        """


class Exact:
    """The exact accountant: Gaussian DP, pure DP and amplification by iteration, in closed form."""

    key = "exact"

    def supports(self, events):
        few = len(selection.pure_epsilons(events)) <= selection.MOST_CHOICES
        return few and unamplified(events) and not any(event.trials for event in events)

    def bounds(self, events, delta, known, complete):
        if pure(events):
            mu = gaussian.composed_mu(event for event in events if not event.kind.pure)
            name = "exact pure and Gaussian DP" if mu else "pure DP"
            return {name: selection.epsilon_of(mu, selection.pure_epsilons(events), delta)}
        uneven = [event for event in events if event.kind.uneven]
        if len(uneven) == 1 and uneven[0].secret_order:  # every unit has the mean over the places
            return {"Gaussian DP by iteration, secret order": iteration.secret_order_epsilon(events, delta)}
        # of several secret orders the worst place in each is a bound too
        name = "Gaussian DP by iteration, worst record" if uneven else "exact Gaussian DP"
        return {name: gaussian.epsilon_of(gaussian.composed_mu(events), delta)}


class LossDistributions:
    """The accountant by privacy loss distributions (PLD).

    Args:
        epsilon: (events, delta, the delta that its grid is made for, or None) -> epsilon.
        sized: that delta.
    """

    key = "pld"

    def __init__(self, epsilon: Callable[..., float] = pld_epsilon, sized: float | None = None):
        self._epsilon, self._sized = epsilon, sized

    def supports(self, events):
        return not pure(events) and not any(event.trials or event.sampling == "shuffle" for event in events)

    def bounds(self, events, delta, known, complete):
        if unamplified(events) and not complete:
            return {}
        sized = delta if self._sized is None else self._sized
        bounds = {PLD: self._epsilon(events, delta, sized)}
        if not known_to_renyi(events):
            whole = whole_batches(events)
            bounds[PLD + COUPLED] = coupled_epsilon(lambda left: self._epsilon(whole, left, sized), events, delta)
        return bounds


class Renyi:
    """The accountant by Renyi DP, the only one for repeat and select, and for choices beside sampled releases."""

    key = "rdp"

    def supports(self, events):
        return unamplified(events) or not any(event.sampling == "shuffle" for event in events)

    def bounds(self, events, delta, known, complete):
        repeated = any(event.trials for event in events)
        if unamplified(events) and not (repeated or pure(events)):
            return {RDP: gaussian_rdp_epsilon(gaussian.composed_mu(events), delta)}
        alone = repeated or pure(events)
        if alone and known and not complete:
            return {}
        epsilon = rdp_epsilon if alone else finest_rdp_epsilon
        if known_to_renyi(events):
            # where privacy loss distributions are as good as exact, it can only be looser
            needed = alone or complete or pld_floor(events) > _EXACT * delta
            return {RDP: epsilon(events, delta)} if needed else {}
        if not alone and math.isfinite(known.get(PLD, math.inf)):
            return {}
        whole = whole_batches(events)
        return {RDP + COUPLED: coupled_epsilon(lambda left: epsilon(whole, left), events, delta)}


class Concentrated:
    """The accountant by zCDP, full batches only: rho + 2 sqrt(rho ln(1/delta)) (Bun and Steinke 2016, Prop. 1.3)."""

    key = "zcdp"

    def supports(self, events):
        return unamplified(events) and not pure(events) and not any(event.trials for event in events)

    def bounds(self, events, delta, known, complete):
        return {"zCDP": zcdp_epsilon(events, delta)}


class Unsampled:
    """The accountant that bounds sampled releases by those without sampling.

    A sampled release is a mixture of the whole release and of one without the unit, so that by the joint convexity of
    the hockey-stick divergence the whole release dominates it. (In a batch that is cut, a unit may take another one's
    place, which moves the sum by twice its sensitivity.) It is the smallest bound where q is close to 1, and where
    delta is so small that Renyi DP would need larger orders.
    """

    key = ""

    def supports(self, events):
        shuffled = any(event.sampling == "shuffle" for event in events)
        return not (unamplified(events) or shuffled or pure(events) or any(event.trials for event in events))

    def bounds(self, events, delta, known, complete):
        whole = [event.scaled(0.5) if event.sampling == TRUNCATED else event for event in events]
        return {UNSAMPLED: gaussian.epsilon_of(gaussian.composed_mu(whole), delta)}


ACCOUNTANTS: list[Accountant] = [Exact(), LossDistributions(), Renyi(), Concentrated(), Unsampled()]
_COARSE = (LossDistributions(coarse_epsilon, _SMALL_DELTA), Renyi(), Unsampled())


def bounds_of(
    events: Sequence[Event], delta: float, complete: bool = False, accountants: Sequence[Accountant] | None = None
) -> dict[str, dict[str, float]]:
    """Key of each accountant that supports `events` -> its bounds.

    Raises:
        ValueError: none does.
    """
    known: dict[str, float] = {}
    bounds_by_key: dict[str, dict[str, float]] = {}
    for accountant in ACCOUNTANTS if accountants is None else accountants:
        if accountant.supports(events):
            bounds = accountant.bounds(events, delta, known, complete)
            bounds_by_key[accountant.key] = bounds
            known |= bounds
    if not bounds_by_key:
        raise ValueError("shuffled and Poisson-sampled events have no common adjacency: they cannot be composed")
    return bounds_by_key


def sampled_epsilons(events: Sequence[Event]) -> Callable[[float], float]:
    """A function delta -> epsilon of sampled events, from one coarse composition of loss distributions."""

    def epsilon_at(delta: float) -> float:
        by_accountant = bounds_of(tuple(events), delta, accountants=_COARSE)
        return min(epsilon for bounds in by_accountant.values() for epsilon in bounds.values())

    return epsilon_at


def zcdp_epsilon(events: Sequence[Event], delta: float) -> float:
    """Epsilon by zCDP with the simple conversion.

    Raises:
        ValueError: an event is sampled, from which zCDP does not profit.
    """
    if not unamplified(events):
        raise ValueError("zCDP does not profit from subsampling")
    rho = gaussian.composed_mu(events) ** 2 / 2
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))
