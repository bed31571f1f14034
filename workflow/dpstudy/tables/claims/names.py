"""The names in a claims table's spec: the paper's methods, pre-trainings and roles, and the entries for each."""

import re
from collections.abc import Iterator, Mapping

from dpstudy.schema.reading import read_yaml
from dpstudy.tables.published import ROLES as PUBLISHED_ROLES
from dpstudy.tables.selecting import listed

METHODS = ("DP-LS", "DP-Newton", "DP-FC", "DP-Adam")  # mehta2023
MODELS = ("linear", "scatter-cnn", "cnn")  # tramer2021: on ScatterNet features the first two, the last on pixels
# Of the papers' data sets. CheXpert's are findings, of which a study may learn others: a claim is about their number.
CLASSES = {"MNIST": 10, "Fashion-MNIST": 10, "CIFAR-10": 10, "CIFAR-100": 100, "ImageNet-1k": 1000, "Places-365": 365}
# Not certified at their target, yet compared at it.
CONTROLS = ("linear-shuffle", "cnn-shuffle", "iteration", "instance-smoothing")
# Of papers whose experiments have some.
ROLES = {paper: tuple(roles) for paper, roles in read_yaml(PUBLISHED_ROLES).items()}


def why_another(dataset: str, called: str, classes: int) -> str:
    """The reason why a data set is not the paper's of this name (its number of classes); "" if it may be.

    Args:
        classes: that its cells tell apart.

    >>> why_another("letters", "MNIST", 5)
    'Not judged by the cells of letters, which tell 5 classes apart: MNIST has 10'
    """
    known = next((count for name, count in CLASSES.items() if _plain(name) == _plain(called)), classes)
    if known == classes:
        return ""
    return f"Not judged by the cells of {dataset}, which tell {classes:,} classes apart: {called} has {known:,}"


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def entries_of(spec: Mapping) -> list[tuple[str, int, str]]:
    """(method, epochs, entry) triples in the spec's `methods`; without epochs an entry has one."""
    triples = []
    for method, given in spec.get("methods", {}).items():
        by_epochs = given if isinstance(given, Mapping) else {1: given}
        triples += [(method, int(epochs), entry) for epochs, entries in by_epochs.items() for entry in listed(entries)]
    return triples


def roles_of(spec: Mapping) -> Iterator[tuple[str, str, str, str]]:
    """(data set, role, features, entry) tuples in the spec's `roles`, in order."""
    for dataset, roles in spec.get("roles", {}).items():
        for role, places in roles.items():
            for place in [places] if isinstance(places, Mapping) else places:
                yield dataset, role, place["features"], place["entry"]
