"""What the spec of a claims table calls the papers' methods, pre-trainings and experiments."""

from collections.abc import Iterator, Mapping

METHODS = ("DP-LS", "DP-Newton", "DP-FC", "DP-Adam")  # mehta2023
MODELS = ("linear", "scatter-cnn", "cnn")  # tramer2021: on ScatterNet features the first two, the last on pixels
CONVERGENCE = tuple(f"{model}-{rate}{clip}" for model in MODELS for rate in ("low", "high") for clip in ("", "-clip"))
CONTROLS = ("linear-shuffle", "cnn-shuffle", "iteration")  # not certified at their target, yet compared at it
ROLES = (
    *MODELS,  # private, at their best settings (Tables 1 and 13)
    "linear-printed",  # the same noise as the paper's
    *CONTROLS,  # shuffled batches (Table 19), privacy amplification by iteration (Figure 10)
    "cnn-smaller",  # Table 20
    "unnormalised",  # the three of Table 2
    "group-normalised",
    "data-normalised",
    *(f"nonprivate-{model}" for model in MODELS),  # Table 11
    *CONVERGENCE,  # Figures 3 and 11, Table 14; -clip: without noise
    "cnn-batches",  # Figure 7: entries from the smallest batch to the largest
    "transfer-cifar100",  # Figure 5
    "transfer-imagenet",
    "nonprivate-transfer-cifar100",
    "nonprivate-transfer-imagenet",
    "random-patches",  # appendix A: entries or feature sets from the fewest features to the most
)


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


def roles_of(spec: Mapping) -> Iterator[tuple[str, str, str, str]]:
    """(data set, role, features, entry) of the spec's `roles`, in order."""
    for dataset, roles in spec.get("roles", {}).items():
        for role, places in roles.items():
            for place in [places] if isinstance(places, Mapping) else places:
                yield dataset, role, place["features"], place["entry"]
