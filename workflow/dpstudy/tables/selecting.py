"""Selecting the cells that parts of a table's or figure's spec name."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

# Axis of a cell -> the key of a spec that names several of it.
AXES = {"dataset": "datasets", "features": "features", "entry": "entries", "epsilon": "epsilons"}
Pattern = dict[str, list[str]]


def listed(value: str | list[str]) -> list[str]:
    """A name or a list of names, as a list."""
    return [value] if isinstance(value, str) else list(value)


def named(part: Mapping) -> Pattern:
    """Axis -> the names in a part of a spec; an axis that is absent stands for all names.

    >>> named({"datasets": ["a", "b"], "entry": "ls", "label": "DP-LS"})
    {'dataset': ['a', 'b'], 'entry': ['ls']}
    """
    given = {axis: part.get(axis, part.get(several)) for axis, several in AXES.items()}
    return {axis: listed(names) for axis, names in given.items() if names is not None}


def crossed(spec: Mapping) -> list[Pattern]:
    """The patterns of each combination of a spec's groups, rows and columns."""
    parts = [spec[kind] for kind in ("groups", "rows", "columns") if kind in spec]
    return [both for each in itertools.product(*parts) if (both := meet(map(named, each))) is not None]


def meet(patterns: Iterable[Pattern]) -> Pattern | None:
    """The intersection of patterns; None where it is empty.

    >>> meet([{"dataset": ["a", "b"]}, {"dataset": ["b"], "entry": ["ls"]}])
    {'dataset': ['b'], 'entry': ['ls']}
    >>> meet([{"dataset": ["a"]}, {"dataset": ["b"]}])
    """
    common: Pattern = {}
    for pattern in patterns:
        for axis, names in pattern.items():
            common[axis] = [name for name in common.get(axis, names) if name in names]
    return common if all(common.values()) else None


def like(cells: Mapping[str, Any], spec: Mapping, patterns: Iterable[Pattern]) -> list[str]:
    """The cells that match the spec and at least one pattern, in the study's order."""
    whole = [both for pattern in patterns if (both := meet((named(spec), pattern))) is not None]
    return [name for name, cell in cells.items() if any(_fits(cell, pattern) for pattern in whole)]


def _fits(cell: Any, pattern: Pattern) -> bool:
    return all(getattr(cell, axis) in names for axis, names in pattern.items())


def cell_path(part: Mapping) -> str:
    """The name of the cell in a part of a spec.

    >>> cell_path({"dataset": "mnist", "features": "pixels", "entry": "ls", "epsilon": "1", "label": "DP-LS"})
    'mnist/pixels/ls/eps=1'
    """
    return "{dataset}/{features}/{entry}/eps={epsilon}".format_map(part)


def searched(spec: Mapping) -> list[str]:
    """The cells of a spec's `searches`, each once."""
    rows = ((row, part) for row in spec.get("searches", []) for part in row["cells"])
    return list(dict.fromkeys(cell_path(row | part) for row, part in rows))
