"""Verification of a finished ledger by accountants that took no part in training.

Training certifies its epsilon by privacy/accounting.py. Here the events of a finished ledger.json are read afresh, as
dictionaries, and given to others: the closed form of dp-accounting's Gaussian privacy loss, its PLD accountant with
settings of its own, Renyi divergences by numerical integration, and where batches are samples our second accountant
(privacy/second_accountant.py), whose bracket no rounding can take from. What holds:

    exact <= PLD <= RDP,    bracket <= RDP,
    certified = exact where there is amplification by nothing,
    else no less than the bracket's lower end, and at most a thousandth above its upper one.

Where training's accountants know no better, at a delta not far above what rounding can take from them, epsilon must be
what they find. PLD is asked of Poisson samples for that alone.
The best of several runs is known to Renyi DP alone: there two computations of it must agree.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from dpstudy.privacy.distributions_certificate import (
    CUT,
    ROUNDING,
    beside_cuts,
    chance_of_a_cut,
    clear,
    events_sampled,
    finite,
    pld,
    uncut,
)
from dpstudy.privacy.event_bounds import PURE, pure_epsilons
from dpstudy.privacy.event_bounds import bounds as bounds_of_events
from dpstudy.privacy.ledger_events import flat
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.renyi_certificate import ORDERS, WHOLE, divergence_of, least_epsilon
from dpstudy.privacy.second_accountant import SMALLEST_DELTA, bracket
from dpstudy.privacy.selection_certificate import best_run_bound, choice_delta, choice_pld

AGREEMENT = 1e-3  # relative, between two discretisations of one privacy loss
BOUNDS = ("exact", "pld", "rdp", "bracket")
_CLOSED_FORM = 1e-6  # relative, between two solutions of one equation
_OTHER_ORDERS = 1e-2  # relative, between two sets of Renyi orders, or of distributions where rounding begins to count
_NEGLIGIBLE = 1e-9


def recertify(ledger: Mapping, drawn: Sequence[Mapping[str, int]] = ()) -> dict:
    """The bounds on a ledger's epsilon by independent accountants, and the faults that they find.

    Args:
        ledger: the content of a ledger.json.
        drawn: for each seed, how often its noise source released what.

    Returns:
        {"epsilon", "bounds": {name of BOUNDS: the bound, or None where it is not defined}, "faults": sentences, none
        where it stands}.
    """
    faults = [_against_draws(ledger["events"], counts, seed) for seed, counts in enumerate(drawn)]
    bounds: dict[str, float | None] = dict.fromkeys(BOUNDS)
    if ledger["guarantee"] == "proved":
        events, delta = ledger["events"], ledger["delta"]
        bounds |= bounds_of(events, delta)
        ordered, most = clear(flat(events), delta), _tightest(bounds)
        if bounds["exact"] is None and most is not None and (ledger["epsilon"] or 0.0) > most * (1 + AGREEMENT):
            loose = [most, _tightest(bounds_of(events, delta, loose=True))]
            most = max(bound for bound in loose if bound is not None)
        faults += _against_bounds(ledger["epsilon"], bounds, _least(events, delta), most, ordered)
    elif ledger["epsilon"] is not None:
        faults.append(f"nothing is proved, and yet epsilon {upper_bound(ledger['epsilon'])} is stated")
    return {"epsilon": ledger["epsilon"], "bounds": bounds, "faults": [fault for fault in faults if fault]}


def _against_draws(events: Sequence[Mapping], counts: Mapping[str, int], seed: int) -> str:
    declared: dict[str, int] = {}
    for event in flat(events):
        declared[event["name"]] = declared.get(event["name"], 0) + event["count"]
    if declared == dict(counts):
        return ""
    return f"seed number {seed + 1} drew noise for {dict(counts)}, where the ledger declares {declared}"


def _tightest(bounds: Mapping[str, float | None]) -> float | None:
    return bounds["exact"] if bounds["exact"] is not None else _smallest(list(bounds.values()))


@lru_cache(maxsize=4096)
def _sampled(known: tuple, delta: float) -> tuple[float, float] | None:
    """The second accountant's bracket where batches are samples; None where there is none."""
    events = [dict(event) | {"params": dict(params)} for event, params in known]
    if not events_sampled(events) or delta < SMALLEST_DELTA:
        return None
    try:
        return bounds_of_events(events, delta, bracket)
    except ValueError:
        return None


def _bracket(events: Sequence[Mapping], delta: float) -> tuple[float, float] | None:
    if any("events" in event for event in events):  # the best of several runs
        return None
    kept = ("mechanism", "noise_multiplier", "count", "sampling", "sampling_rate")
    known = [(tuple((key, event[key]) for key in kept), tuple(event.get("params", {}).items())) for event in events]
    return _sampled(tuple(known), delta)


def _least(events: Sequence[Mapping], delta: float) -> float | None:
    """What the epsilon of sampled events cannot be below."""
    between = _bracket(events, delta)
    return between[0] if between else None


def _against_bounds(
    epsilon: float | None, bounds: Mapping[str, float | None], least: float | None, most: float | None, ordered: bool
) -> list[str]:
    """
    Args:
        least: what epsilon is not below, whichever accountant is asked; None: not known.
        most: what training's accountants may find, on coarser grids and with series that overestimate.
        ordered: delta is far above what rounding can take from it.
    """
    if epsilon is None:
        return ["a proved guarantee states no epsilon"]
    named = {name: value for name, value in bounds.items() if value is not None}
    tightest = _tightest(bounds)
    if tightest is None or most is None:
        return ["no accountant bounds its events"]
    faults, stated = [], f"epsilon {_printed(epsilon)} is stated"
    exact, apart = "exact" in named, "pld" in named and ordered
    slack = _CLOSED_FORM if exact else AGREEMENT if apart or ("bracket" in named and ordered) else _OTHER_ORDERS
    floors = [] if least is None else [least * (1 - _CLOSED_FORM)]
    if least is None or "pld" in named or not ordered:  # what training's accountants, or their like, find at least
        like = [named[name] for name in ("pld", "rdp") if name in named]
        floors.append((tightest if exact or not like else min(like)) * (1 - slack))
    if epsilon < max(floors):
        faults.append(f"{stated}, where its events are worth {_printed(max(floors))}")
    if epsilon > most * (1 + slack) + _NEGLIGIBLE:
        faults.append(f"{stated}, more than the {_printed(most)} that its events are worth")
    order = [(name, named[name]) for name in ("exact", "pld", "rdp") if name in named and ordered]
    pairs = [
        *itertools.pairwise(order),
        *([(("bracket", least), ("rdp", named["rdp"]))] if least and "rdp" in named else []),
    ]
    for (tighter, low), (looser, high) in pairs:
        if low > high * (1 + AGREEMENT) + _NEGLIGIBLE:
            values = f"{_printed(low)}, more than the {_printed(high)} of {looser}"
            faults.append(f"{tighter} gives {values}, which is the looser bound")
    return faults


def _printed(epsilon: float) -> str:
    return upper_bound(epsilon, digits=6)


def bounds_of(events: Sequence[Mapping], delta: float, loose: bool = False) -> dict[str, float | None]:
    """Bounds on the epsilon of a ledger's events by accountant; None where one does not support them.

    `exact`: closed form, of releases without amplification. `pld`: dp-accounting, at what rounding leaves of delta, of
    Poisson samples with `loose` only. `rdp`: integrated; or without sampling in closed form, where that is smaller.
    `bracket`: the second accountant's upper end, where batches are samples.

    Args:
        loose: as training's accountants may find them: Renyi's series overestimate fractional orders, and the grid of
            a privacy loss distribution is fine against what Renyi DP bounds.
    """
    known = tuple(tuple(sorted(_costs(event).items())) for event in flat(events))
    between = None if loose else _bracket(events, delta)
    return dict(_bounds(known, delta, loose)) | {"bracket": finite(between[1]) if between else None}


def _costs(event: Mapping) -> dict:
    """What of an event costs privacy."""
    kept = ("mechanism", "noise_multiplier", "count", "sampling", "sampling_rate")
    costs = {key: event[key] for key in kept} | dict(event.get("params", {}))
    return costs | ({"trials": event["trials"]} if event["trials"] else {})


@lru_cache(maxsize=4096)
def _bounds(known: tuple, delta: float, loose: bool) -> tuple:
    events, orders = [dict(event) for event in known], WHOLE if loose else ORDERS
    parts = {event["part"] for event in events if "part" in event}
    if parts:  # each unit is in one part of the records, so that the largest epsilon counts
        every = [dict(_bounds(_touching(events, part), delta, loose)) for part in sorted(parts)]
        return tuple(_of_all_parts(every, clear(events, delta)).items())
    bounds: dict[str, float | None] = dict.fromkeys(BOUNDS)
    known_here = {"gaussian", "iterated-gaussian", *PURE}
    if not all(event["mechanism"] in known_here and event["noise_multiplier"] for event in events):
        return tuple(bounds.items())
    if any("trials" in event for event in events):
        if all("trials" in event for event in events) and len({event["trials"] for event in events}) == 1:
            chance = chance_of_a_cut(events) * events[0]["trials"]
            bounds["rdp"] = finite(beside_cuts(lambda rest: best_run_bound(uncut(events), rest, orders), chance, delta))
        return tuple(bounds.items())
    choices = pure_epsilons(events)
    if choices:
        return tuple((bounds | _choice_bounds(events, choices, delta)).items())
    if not events_sampled(events):
        bounds["exact"] = _solved(_gaussian_deltas(events), delta)
    if any(event["sampling"] == "shuffle" for event in events):
        return tuple(bounds.items())
    if any(event["sampling"] == CUT for event in events):
        return tuple((bounds | _cut_bounds(events, delta, orders)).items())
    bounds["rdp"] = rdp = _rdp(events, delta, orders)
    if loose or not (events_sampled(events) and clear(events, delta)):  # of others the second accountant is enough
        bounds["pld"] = finite(pld(events, delta, rdp if loose else None))
    return tuple(bounds.items())


def _touching(events: Sequence[Mapping], part: str) -> tuple:
    kept = [event for event in events if event.get("part", part) == part]
    return tuple(tuple(sorted((key, event[key]) for key in event if key != "part")) for event in kept)


def _of_all_parts(every: Sequence[Mapping[str, float | None]], ordered: bool) -> dict[str, float | None]:
    """Of each bound the larger, for units of any part; where no one accountant is the best for all, of the best."""
    larger = {name: _larger([bounds[name] for bounds in every]) for name in BOUNDS}
    if larger["exact"] is None and (larger["pld"] is None or not ordered):
        larger["rdp"] = _larger([_smallest([bounds[name] for name in ("exact", "pld", "rdp")]) for bounds in every])
    return larger


def _larger(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None


def _smallest(values: Sequence[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _choice_bounds(events: Sequence[Mapping], choices: Sequence[float], delta: float) -> dict[str, float | None]:
    others = [event for event in events if event["mechanism"] not in PURE]
    if any(event["mechanism"] != "gaussian" or event["sampling"] != "none" for event in others):
        return {}
    exact = _solved(choice_delta(_gaussian_deltas(others) if others else None, choices), delta)
    left = delta - ROUNDING * (len(choices) + sum(event["count"] for event in others))
    bound = choice_pld(others, choices, left, max(1e-4 * exact, 1e-8)) if left > 0 else math.inf
    return {"exact": exact, "pld": finite(bound)}


def _gaussian_deltas(events: Sequence[Mapping]) -> Callable[[float], float]:
    """The exact delta at an epsilon: of the worst unit, or the mean over the places of a secret order."""
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    iterated = [event for event in events if event["mechanism"] == "iterated-gaussian"]
    hidden = iterated[0] if len(iterated) == 1 and iterated[0]["order"] == "secret" else None
    square = sum(_participations(event) / event["noise_multiplier"] ** 2 for event in events if event is not hidden)
    squares, shares = [square], [1.0]
    if hidden:
        batches, rate = hidden["count"] // hidden["epochs"], hidden["sampling_rate"]
        worth = [(hidden["epochs"] - 1) / batches + 1 / left for left in range(batches, 0, -1)]
        squares = [square + value / hidden["noise_multiplier"] ** 2 for value in worth]
        shares = [rate] * (batches - 1) + [1 - rate * (batches - 1)]
    losses = [GaussianPrivacyLoss(1 / math.sqrt(value)) for value in squares]

    def delta_at(epsilon: float) -> float:
        return sum(share * loss.get_delta_for_epsilon(epsilon) for share, loss in zip(shares, losses, strict=True))

    return delta_at


def _participations(event: Mapping) -> float:
    """In how many releases the worst unit of an unamplified event takes part."""
    if event["mechanism"] == "iterated-gaussian":
        return (event["epochs"] - 1) * event["epochs"] / event["count"] + 1
    return event["epochs"] if event["sampling"] == "shuffle" else event["count"]


def _solved(delta_at: Callable[[float], float], delta: float) -> float:
    """The epsilon at which a decreasing delta falls to the one that is allowed; 0 where it never was above."""
    from scipy.optimize import brentq

    if delta_at(0.0) <= delta:
        return 0.0
    high = 1.0
    while delta_at(high) > delta:
        high *= 2
    return float(brentq(lambda epsilon: delta_at(epsilon) - delta, 0.0, high, xtol=1e-12, rtol=1e-12))


def _rdp(events: Sequence[Mapping], delta: float, orders: tuple[float, ...]) -> float:
    """Renyi DP; of samples what the same releases cost without sampling, if that is less: they never cost more."""
    whole = [dict(event) | ({"sampling_rate": 1.0} if event["sampling"] == "none" else {}) for event in events]
    epsilon = least_epsilon(divergence_of(whole), delta, orders, between=True)
    return min(epsilon, _solved(_gaussian_deltas(events), delta)) if events_sampled(events) else epsilon


def _cut_bounds(events: Sequence[Mapping], delta: float, orders: tuple[float, ...]) -> dict[str, float | None]:
    """Of batches that are cut to a largest size."""
    whole, chance = uncut(events), chance_of_a_cut(events)
    bound = min(pld(events, delta), beside_cuts(lambda rest: pld(whole, rest), chance, delta))
    if bound < math.inf:
        return {"pld": bound}
    moved = [  # a unit may displace another in the batch, so that sensitivity doubles
        dict(event) | {"noise_multiplier": event["noise_multiplier"] / 2} if event["sampling"] == CUT else event
        for event in events
    ]
    unsampled = _solved(_gaussian_deltas(moved), delta)
    return {"rdp": min(unsampled, beside_cuts(lambda rest: _rdp(whole, rest, orders), chance, delta))}
