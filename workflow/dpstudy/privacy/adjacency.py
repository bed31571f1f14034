"""The epsilon of a guarantee under each adjacency: add/remove, zero-out and replace-one.

add-remove-one: one has a unit more. zero-out: a unit's place stays, its contribution becomes zero. replace-one: a unit
is exchanged for any other. What is certified for adding and removing holds for zeroing out, which is removing as far as
what is released can tell; but where batches are cut to a size, a unit without contribution still takes a place from
another, and zeroing out counts as replacing. Replacing is two such steps:

    mu-Gaussian-DP becomes 2 mu (Dong, Roth and Su 2022, Theorem 2.14), and
    (epsilon, delta) becomes (2 epsilon, (1 + e^epsilon) delta), by the definition applied twice.

The second is for what has no closed form, at the delta' that leads to the wanted delta. It is a bound: of a few sampled
releases the true epsilon for replacing can be little more than that for removing.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from dpstudy.privacy import gaussian
from dpstudy.privacy.accountants import sampled_epsilons
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.events import TRUNCATED, Event, pure, unamplified
from dpstudy.privacy.ledger_events import from_ledger

ADJACENCIES = ("add-remove-one", "zero-out", "replace-one")
_BISECTIONS = 40
_SMALLEST = -690.0  # ln of the smallest delta' that is tried


def epsilons_by_adjacency(ledger: Mapping) -> dict[str, float | None]:
    """Adjacency -> the epsilon of a ledger at its delta; None where nothing is proved.

    Fixed batches of a shuffled pass are certified for zeroing out: without a unit all other batches would be cut
    otherwise, so that adding and removing have no epsilon.
    """
    epsilons: dict[str, float | None] = dict.fromkeys(ADJACENCIES)
    if ledger["guarantee"] != "proved":
        return epsilons
    events = from_ledger(ledger["events"])
    epsilons["replace-one"] = replacing_epsilon(events, ledger["delta"])
    cut = any(event.sampling == TRUNCATED for event in events)
    epsilons["zero-out"] = epsilons["replace-one"] if cut else ledger["epsilon"]
    if ledger["adjacency"] == "add-remove-one":
        epsilons["add-remove-one"] = ledger["epsilon"]
    return epsilons


def replacing_epsilon(events: Sequence[Event], delta: float) -> float:
    """The replace-one epsilon of events composed adaptively; infinite where there is no guarantee.

    >>> once = Event("gradients", "gaussian", 10.0, 1.0, count=100)  # 4.38 for adding or removing one
    >>> round(replacing_epsilon([once], 1e-5), 2)
    10.0
    """
    if _closed(events):
        return gaussian.epsilon_of(2 * gaussian.composed_mu(events), delta)
    epsilon_at = _epsilon_at(tuple(events))
    smaller = _half_way(epsilon_at, delta)
    return 2 * epsilon_at(smaller) if smaller else math.inf


def _closed(events: Sequence[Event]) -> bool:
    """Whether the events are mu-Gaussian-DP, and every unit has the same mu."""
    plain = all(event.part is None and not event.trials and not event.secret_order for event in events)
    return plain and unamplified(events) and not pure(events)


def _epsilon_at(events: tuple[Event, ...]) -> Callable[[float], float]:
    """delta -> epsilon for adding, removing or zeroing out."""
    repeated = pure(events) or any(event.trials or event.part for event in events)
    if repeated or unamplified(events):
        return lambda delta: certify(events, delta).epsilon
    return sampled_epsilons(events)


def _half_way(epsilon_at: Callable[[float], float], delta: float) -> float:
    """The largest delta' for which (1 + e^epsilon(delta')) delta' is at most delta, or a little less; 0 if none is."""

    def allowed(log_delta: float) -> bool:
        epsilon = epsilon_at(math.exp(log_delta))
        return log_delta + (epsilon + math.log1p(math.exp(-epsilon)) if epsilon < math.inf else epsilon) <= target

    target = math.log(delta)
    high, low = target, target - 1
    while not allowed(low):
        high, low = low, low - 2
        if low < _SMALLEST:
            return 0.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return math.exp(low)
