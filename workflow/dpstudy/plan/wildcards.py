"""Constraints on the rules' wildcards, and the cell that a job's wildcards name."""

import re
from collections.abc import Iterable, Mapping

from dpstudy.config.cells import Cell
from dpstudy.plan.publics import packages
from dpstudy.plan.sources import sources

NO_MATCH = "(?!)"  # a pattern for a wildcard that a study leaves without values
_OF_FILES = {"split": "train|validation|test", "shard": "[0-9]{5}", "share": "[0-9]{3}"}
_OF_SUMS = {"clip": r"inf|[0-9.e+-]+", "grams": "shared|per-class"}


def alternatives(names: Iterable) -> str:
    """A regular expression that matches exactly these names.

    >>> alternatives(["a.b", 1]), alternatives([])
    ('a\\\\.b|1', '(?!)')
    """
    return "|".join(re.escape(str(name)) for name in names) or NO_MATCH


def constraints(study: dict) -> dict[str, str]:
    """Wildcard -> regular expression: names in the config, and parts of file names."""
    names = {
        "dataset": study["datasets"],
        "source": sources(study),
        "public": study["public"],
        "backbone": study["backbones"],
        "package": packages(study),
        "fit": study["fits"],
        "features": study["features"],
        "entry": study["methods"],
        "epsilon": study["epsilons"],
        "table": study["tables"],
        "figure": study["figures"],
        "seed": study["seeds"],
    }
    return {wildcard: alternatives(known) for wildcard, known in names.items()} | _OF_FILES | _OF_SUMS


def finite(study: dict) -> str:
    """A regular expression that matches the finite epsilons."""
    return alternatives(epsilon for epsilon in study["epsilons"] if epsilon != "inf")


def cell_of(wildcards: Mapping[str, str]) -> Cell:
    """The cell that a job's wildcards name."""
    return Cell(*(wildcards[axis] for axis in ("dataset", "features", "entry", "epsilon")))
