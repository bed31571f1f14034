"""Accounting: the certified epsilon of a list of events.

`certify` is the one way to an epsilon: exact composition where no event is subsampled, else the smallest bound of the
accountants that support the events (privacy/accountants.py); Renyi DP for the best of several runs. RDP and zCDP stand
beside it as independent, looser bounds. Where events touch one part of the records only, each unit is in one part, and
the worse part counts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpstudy.core.errors import StudyError
from dpstudy.privacy.accountants import ACCOUNTANTS, bounds_of
from dpstudy.privacy.events import Event, unproved

SMALLEST_DELTA = 1e-300


@dataclass(frozen=True)
class Certificate:
    """A certified epsilon (infinite where there is no guarantee), its accountant, and the other bounds.

    `epsilon_by` maps exact, pld, rdp, zcdp, and accountants of one's own, to a bound, or to None where that
    accountant is undefined or was not asked.
    """

    epsilon: float
    accountant: str
    adjacency: str
    epsilon_by: dict[str, float | None]


def certify(events: Sequence[Event], delta: float, complete: bool = False) -> Certificate:
    """The certified epsilon of `events`, composed adaptively.

    With `complete`, every accountant that is defined is asked; without, only those that may be the certifying one
    (and the free closed forms).

    Raises:
        StudyError: delta is so small that numbers of its size have fewer digits.
        ValueError: no accountant has a bound for these events together.

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
        return _worst([certify(part_events, delta, complete) for part_events in by_part(events)])
    by: dict[str, float | None] = {accountant.key: None for accountant in ACCOUNTANTS if accountant.key}
    adjacency = "zero-out" if any(event.sampling == "shuffle" for event in events) else "add-remove-one"
    if unproved(events) or any(event.noise_multiplier == 0 for event in events):
        return Certificate(math.inf, "none", adjacency, by)
    bounds_by_key = bounds_of(events, delta, complete)
    by |= {key: _smallest(bounds) for key, bounds in bounds_by_key.items() if key}
    bounds = {name: epsilon for each in bounds_by_key.values() for name, epsilon in each.items()}
    accountant = min(bounds, key=lambda name: bounds[name])
    return Certificate(bounds[accountant], accountant, adjacency, by)


def by_part(events: Sequence[Event]) -> list[tuple[Event, ...]]:
    """The events that touch each part of the records; a single list of all events if none names a part."""
    parts: list[str | None] = [*sorted({event.part for event in events if event.part})] or [None]
    return [tuple(replace(event, part=None) for event in events if event.part in (None, part)) for part in parts]


def finite(epsilon: float | None) -> float | None:
    """The epsilon as a ledger has it: None where there is no bound, or an infinite one."""
    return epsilon if epsilon is not None and math.isfinite(epsilon) else None


def _smallest(bounds: dict[str, float]) -> float | None:
    return min((value for value in bounds.values() if math.isfinite(value)), default=None)


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
