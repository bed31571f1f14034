"""What the spec of a claims table calls the paper's methods and pre-trainings."""

from collections.abc import Mapping

METHODS = ("DP-LS", "DP-Newton", "DP-FC", "DP-Adam")


def entries_of(spec: Mapping) -> list[tuple[str, int, str]]:
    """(method, epochs, entry) of the spec's `methods`; an entry without epochs makes one pass."""
    found = []
    for method, given in spec.get("methods", {}).items():
        by_epochs = given if isinstance(given, Mapping) else {1: given}
        found += [(method, int(epochs), entry) for epochs, entries in by_epochs.items() for entry in listed(entries)]
    return found


def listed(value: str | list[str]) -> list[str]:
    """One name, or several, as a list."""
    return [value] if isinstance(value, str) else list(value)
