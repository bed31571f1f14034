"""Composition of several ledgers of the same records."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dpstudy.privacy.accountants import RDP
from dpstudy.privacy.accounting import certify, finite
from dpstudy.privacy.events import PARTS, Event, known_to_renyi, pure, unamplified
from dpstudy.privacy.ledger_events import from_ledger
from dpstudy.privacy.renyi import RDP_ORDERS, converted, rdp_curve, rdp_epsilon


def total(ledgers: Sequence[tuple[dict, int]], delta: float, same_parts: bool = True) -> dict:
    """The privacy cost of publishing every seed of every cell of one data set.

    Args:
        ledgers: (ledger, number of seeds) of each cell.
        delta: of the data set.
        same_parts: whether a unit is in the train or in the validation split for all of them, as for the cells of one
            entry of a config; else it is taken to be where it loses most, for each.

    Returns:
        {"delta", "cells", "seeds", "epsilon", "accountant", "unbounded", "epsilon_of_proved", "adjacencies", "noise",
        "not_accounted"}: epsilon is None where a cell without a proved guarantee makes the total infinite; "unbounded"
        counts such cells and "epsilon_of_proved" composes the others. The last three are all that their ledgers say;
        where one is of "zero-out", so is the sum.
    """
    proved = [(ledger, seeds) for ledger, seeds in ledgers if ledger["guarantee"] == "proved"]
    unbounded = len(ledgers) - len(proved)
    epsilon, accountant = _composed(proved, delta, same_parts) if proved else (0.0, "none")
    return {
        "delta": delta,
        "cells": len(ledgers),
        "seeds": sum(seeds for _, seeds in ledgers),
        "epsilon": None if unbounded else finite(epsilon),
        "accountant": accountant,
        "unbounded": unbounded,
        "epsilon_of_proved": finite(epsilon),
        "adjacencies": _all(ledger["adjacency"] for ledger, _ in proved),
        "noise": _all(ledger["noise"] for ledger, _ in proved),
        "not_accounted": _all(sentence for ledger, _ in proved for sentence in ledger["not_accounted"]),
    }


def _all(values: Iterable[str]) -> list[str]:
    """Each once, in the order of the first."""
    return list(dict.fromkeys(values))


def _composed(proved: Sequence[tuple[dict, int]], delta: float, same_parts: bool) -> tuple[float, str]:
    """Exact Gaussian composition of the full-batch releases; with subsampled ones or selections, RDP of everything."""
    events: Counter[Event] = Counter()
    for ledger, seeds in proved:
        for event in _nameless(ledger):
            events[event] += seeds
    if pure(events) or any(event.part or event.trials for event in events):
        return _composed_with_selections(proved, delta, same_parts)
    if unamplified(events):
        return certify(tuple(events.elements()), delta).epsilon, "exact Gaussian DP"
    if any(event.sampling == "shuffle" for event in events):
        return math.inf, "none (shuffled and Poisson-sampled cells have no common adjacency)"
    composed = [replace(event, count=event.count * times) for event, times in events.items()]
    if not known_to_renyi(composed):
        certificate = certify(composed, delta)
        return certificate.epsilon, certificate.accountant
    return rdp_epsilon(composed, delta), RDP


def _nameless(ledger: dict) -> tuple[Event, ...]:
    """Its events as far as they cost privacy, so that equal ones of several cells are counted together."""
    return tuple(replace(event, name="", sensitivity=1.0) for event in from_ledger(ledger["events"]))


def _composed_with_selections(proved: Sequence[tuple[dict, int]], delta: float, same_parts: bool) -> tuple[float, str]:
    """RDP, for the units of each part of the records, or of the worse part of each run at each order."""
    runs: Counter[tuple[Event, ...]] = Counter()
    for ledger, seeds in proved:
        runs[_nameless(ledger)] += seeds
    if any(event.sampling == "shuffle" or not known_to_renyi([event]) for run in runs for event in run):
        return math.inf, "none (no common bound for selections and these batches)"

    def curve(run: tuple[Event, ...], part: str) -> np.ndarray:
        touching = [replace(event, part=None) for event in run if event.part in (None, part)]
        return np.array(rdp_curve(touching, RDP_ORDERS))

    if same_parts:
        sums = [sum(times * curve(run, part) for run, times in runs.items()) for part in PARTS]
    else:
        sums = [sum(times * np.maximum(*(curve(run, part) for part in PARTS)) for run, times in runs.items())]
    return max(converted(RDP_ORDERS, np.asarray(curve_sum), delta) for curve_sum in sums), RDP
