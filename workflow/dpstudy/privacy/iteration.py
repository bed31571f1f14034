"""Privacy amplification by iteration: noisy gradient descent of which only the last iterate is released.

The algorithm (Feldman, Mironov, Talwar and Thakurta 2018, "Privacy amplification by iteration"; tramer2021, D.3): n
public slots are cut into m = ceil(n/B) fixed batches, visited in the same order in each of K epochs. A step is

    w <- P(w - (eta/B) (sum of the batch's gradients + Z)),    Z ~ N(0, (s L)^2 I),

P a projection onto a convex set (or nothing), s the noise multiplier. Losses are convex, their gradients beta-Lipschitz
in w and at most L long, and eta <= 2/beta: a step without noise moves no two points apart.

Why steps after a record's own protect it. Let D' be D with one slot emptied, which shifts the update of its batch by at
most one unit (of eta L/B; the noise of a step has standard deviation s units). Run D from noises Z_t, and beside it a
shadow that updates by D' from noises Z_t + e_t, where e_t, of length at most a_t, pulls the shadow towards the run. No
step moves the two apart by more than its shift, so if the pulls never exceed what the shifts so far have opened, and
equal it at the end, both end in the same point. The shadow is D' but for adaptively chosen shifts a_t of Gaussian
noise. Hence the last iterates are as hard to tell apart as adaptively composed Gaussian mechanisms of sensitivities
a_t: mu-Gaussian-DP with mu^2 = sum a_t^2 / s^2, of which Theorem 22 of the paper is the Renyi divergence alpha mu^2/2.

The best pulls. A record of batch j = 0..m-1 opens a unit at steps j, j + m, ... The sum of squares is least when each
unit is closed evenly over the m steps until the next appearance, and the last one over the m - j that remain:

    mu_j^2 = ((K - 1)/m + 1/(m - j)) / s^2.

So the guarantee is uneven: the last batch has nothing to hide behind, (K - 1)/m + 1. If the slots are dealt by a
uniformly random permutation that is never released, each record sits in batch j with the batch's share of the slots
whatever the others' places are, so that every record has delta(epsilon) = the mean of its delta over positions (the
hockey-stick divergence is jointly convex).

Adjacency is zero-out: the slot stays, its gradient becomes zero. Replacing a record shifts by two units: half of s.
"""

import math
from collections.abc import Sequence

import numpy as np

from dpstudy.privacy import gaussian
from dpstudy.privacy.events import Event


def batch_shares(event: Event) -> np.ndarray:
    """(m,) the shares of the n slots in each batch: B/n each, except the last one, which has the rest."""
    batches = event.count // _epochs(event)
    shares = np.full(batches, event.sampling_rate)
    shares[-1] = 1 - event.sampling_rate * (batches - 1)
    return shares


def _epochs(event: Event) -> int:
    if event.epochs is None:
        raise ValueError(f"event {event.name!r}: only fixed batches, visited in each epoch, amplify by iteration")
    return event.epochs


def squared_shifts(batches: int, epochs: int) -> np.ndarray:
    """(m,) the sums of a_t^2 by the batch of a record: (K - 1)/m + 1/(m - j).

    >>> squared_shifts(4, 1).round(2)
    array([0.25, 0.33, 0.5 , 1.  ])
    """
    return (epochs - 1) / batches + 1 / np.arange(batches, 0, -1)


def record_mus(events: Sequence[Event]) -> tuple[np.ndarray, np.ndarray]:
    """mu for the records of each batch, of one iterated event composed with unamplified ones.

    Args:
        events: exactly one of them iterated; the others are releases in which every record takes part.

    Returns:
        (m,) mu of a record, non-decreasing along the batches, and (m,) shares of the records.
    """
    (iterated,) = (event for event in events if event.kind.uneven)
    others = gaussian.composed_mu(event for event in events if not event.kind.uneven)
    shares = batch_shares(iterated)
    if iterated.noise_multiplier == 0:
        return np.full(len(shares), math.inf), shares
    squares = squared_shifts(len(shares), _epochs(iterated)) / iterated.noise_multiplier**2
    return np.sqrt(others**2 + squares), shares


def share_within(events: Sequence[Event], epsilon: float, delta: float) -> float:
    """The share of the records that have (epsilon, delta)-DP."""
    mus, shares = record_mus(events)
    return float(shares[mus <= gaussian.mu_of(epsilon, delta)].sum())


def for_a_share(events: Sequence[Event], share: float) -> tuple[Event, ...]:
    """The events with the iterated one replaced by its Gaussian equivalent for the best-protected `share`.

    It is one Gaussian release, worth what the worst record of that share loses, so that any accountant can be asked.

    Args:
        share: of the records, in (0, 1].
    """

    def worth(event: Event) -> Event:
        reached = np.cumsum(batch_shares(event))
        worst = int(np.argmax(reached >= share - 1e-9))
        square = squared_shifts(len(reached), _epochs(event))[worst]
        return Event(event.name, "gaussian", event.noise_multiplier / math.sqrt(square), event.sensitivity)

    return tuple(worth(event) if event.kind.uneven else event for event in events)


def secret_order_epsilon(events: Sequence[Event], delta: float) -> float:
    """The epsilon of every record where the batch order is random and secret, rounded up.

    It is the one at which the mean over positions of a record's delta is at most `delta`.
    """
    mus, shares = record_mus(events)
    if np.isinf(mus).any():
        return math.inf

    def excess(epsilon: float) -> float:
        return sum(share * gaussian.delta_of(epsilon, mu) for mu, share in zip(mus, shares, strict=True)) - delta

    if excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, gaussian.epsilon_of(float(mus.max()), delta)  # where even the worst position is below delta
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) <= 0 else (middle, high)
    return high
