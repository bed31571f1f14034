"""Conversion of events to and from ledgers, in which the events of repeated runs are nested in one event."""

from collections.abc import Mapping, Sequence

from dpstudy.privacy.events import Event

REPEATED = "repeat-and-select"


def to_ledger(events: Sequence[Event]) -> list[dict]:
    """The list `events` for a ledger."""
    run = [event for event in events if event.trials is not None]
    single = [event.to_json() for event in events if event.trials is None]
    if not run:
        return single
    repeated = {
        "name": "best of several runs",
        "mechanism": REPEATED,
        "noise_multiplier": None,
        "sensitivity": None,
        "count": 1,
        "sampling": "none",
        "sampling_rate": 1.0,
        "params": {"distribution": "geometric", "mean": run[0].trials},
        "events": [event.to_json() for event in run],
    }
    return [*single, repeated]


def flat(events: Sequence[Mapping]) -> list[dict]:
    """The flattened events of a ledger, each with `trials`, the mean number of repetitions, or None."""
    releases = []
    for event in events:
        if event["mechanism"] == REPEATED:
            releases += [dict(inner) | {"trials": event["params"]["mean"]} for inner in event["events"]]
        else:
            releases.append(dict(event) | {"trials": None})
    return releases


def from_ledger(events: Sequence[Mapping]) -> tuple[Event, ...]:
    """The events in a ledger's list, the inverse of `to_ledger`."""
    return tuple(map(Event.from_json, flat(events)))
