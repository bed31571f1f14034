"""Claims judged by comparisons that workflow/published/claims/ specifies, without code for each claim.

They compare accuracies, or no study decides them. README.md beside that folder explains the keys.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion
from dpstudy.tables.claims.finding import Finding, Part, cells, noted, on_both, on_cells, undecided
from dpstudy.tables.claims.grid import Grid, Place, Value
from dpstudy.tables.claims.names import METHODS
from dpstudy.tables.claims.scores import Printed, Scores, up
from dpstudy.tables.selecting import listed

_NAMED = ("role", "best", "printed", "method")  # the key of a side that names roles, or a method
Triples = Iterable[tuple[object, Value | None, Value | None]]  # name of a cell, left, right


def is_written(claim: Mapping) -> bool:
    """Whether a claim's entry specifies how it is judged."""
    return "compare" in claim or "open" in claim


def finding(claim: Mapping, paper: Printed | None, evidence: Any) -> Finding:
    """The finding on a claim whose entry specifies how it is judged.

    Args:
        claim: its entry.
        paper: what the paper prints by roles; None: its evidence is a grid of methods (mehta2023).
    """
    printed = claim.get("printed", "")
    if "open" in claim:
        return undecided(claim["open"], printed)
    known = {"missing": claim["missing"]} if "missing" in claim else {}
    if "roles" in claim:
        known = {"missing": f"The study has no cells to compare in the roles {claim['roles']}"}
    parts = partial(_parts, claim["compare"], paper, evidence)
    if claim.get("cells_alone"):
        return on_cells(parts(evidence.ours), known["missing"], printed)
    return noted(on_both(evidence, parts, claim.get("about_the_tables", False), **known), printed)


def check(name: str, claim: Mapping, paper: str, roles: Sequence[str]) -> None:
    """Refuse a claim that compares names which its paper's evidence lacks.

    Args:
        name: the claim's id.
        roles: that the paper's numbers and cells are in; none: it compares methods (mehta2023).

    Raises:
        StudyError: names the claim, and the name or key that is none.
    """
    allowed = roles or METHODS
    for one in claim.get("compare", ()):
        keys = {"datasets", "cells", "rising"} if not roles else {"up_to"}
        if wrong := sorted(keys & set(one)):
            raise StudyError(f"{paper}.yaml: {name}: comparisons of this paper have no key {wrong[0]!r}")
        sides = [cell[side] for cell in one.get("cells", [one]) for side in ("left", "right") if side in cell]
        for spec in [*sides, *([one["rising"]] if "rising" in one else [])]:
            if isinstance(spec, Mapping) and ("method" in spec) == bool(roles):
                raise StudyError(
                    f"{paper}.yaml: {name}: {dict(spec)} is for {'mehta2023' if roles else 'other papers'}"
                )
            called = next((spec[key] for key in _NAMED if key in spec), ()) if isinstance(spec, Mapping) else spec
            for each in listed(called) if isinstance(called, str | list) else []:
                if each not in allowed:
                    near = suggestion(each, allowed)
                    raise StudyError(f"{paper}.yaml: {name}: {each!r} is no {'role' if roles else 'method'}{near}")


def _parts(comparisons: Sequence[Mapping], paper: Printed | None, evidence: Any, known: Any) -> list[Part]:
    """The comparisons as the accuracies in `known`, ours or the printed ones, have them."""
    parts = []
    for one in comparisons:
        if paper and (only := one.get("datasets")) and not set(only) & set(known.datasets):
            continue  # a claim about several data sets is judged on those that are there
        triples = _of_roles(one, paper, evidence, known) if paper else _of_methods(one, known)
        if "over" in one:
            part = Part.of(one["over"], triples)
        else:
            part = Part.not_below(one["not_below"], triples, one.get("margin", 0.0))
        if part.counted or not one.get("optional"):
            parts.append(part)
    return parts


def _of_roles(one: Mapping, paper: Printed, evidence: Any, known: Scores) -> Triples:
    if "rising" in one:
        return up(known.in_order(one["rising"]))
    datasets = one.get("datasets", [])
    if "cells" not in one and not isinstance(one["left"], Mapping):
        sides = [(left, right) for left in listed(one["left"]) for right in listed(one["right"])]
        private = not one.get("without_privacy", False)
        return [triple for left, right in sides for triple in known.pairs(left, right, datasets, private)]
    return [
        (cell.get("at", dataset), *(_value(cell[side], dataset, paper, evidence, known) for side in ("left", "right")))
        for dataset in datasets or known.datasets
        for cell in one.get("cells", [one])
    ]


def _value(spec: Any, dataset: str, paper: Printed, evidence: Any, known: Scores) -> Value | None:
    """A number; {role, epsilon}; {best: role or roles, up_to: epsilon}, over finite epsilons; or {printed: role}, the
    best that the paper prints. Numbers of the paper's count beside cells on as many records alone."""
    if not isinstance(spec, Mapping):
        return paper.level(known, dataset, Value(float(spec)))
    if "printed" in spec:
        return paper.level(known, dataset, evidence.printed.best(dataset, spec["printed"]))
    if "role" in spec:
        return known.get(dataset, spec["role"], float(spec["epsilon"]))
    values = [known.best(dataset, role, spec.get("up_to", math.inf)) for role in listed(spec["best"])]
    return max((value for value in values if value), key=lambda value: value.number, default=None)


def _of_methods(one: Mapping, grid: Grid) -> Triples:
    if one.get("without_privacy"):
        places: Iterable[tuple[object, Place, float]] = ((place, place, math.inf) for place in grid.places)
    else:
        places = (cell for cell in cells(grid) if cell[2] <= one.get("up_to", math.inf))
    for name, place, epsilon in places:
        left, right = (_of_method(one[side], grid, place, epsilon) for side in ("left", "right"))
        yield name, left, right


def _of_method(spec: Any, grid: Grid, place: Place, epsilon: float) -> Value | None:
    """The best of a method, or of several, over their epochs; of {method, epochs} alone, or {method, but: epochs}."""
    if not isinstance(spec, Mapping):
        return grid.best(place, epsilon, listed(spec))
    if "epochs" in spec:
        return grid.get(place, spec["method"], spec["epochs"], epsilon)
    return grid.best(place, epsilon, [spec["method"]], without=[(spec["method"], spec["but"])])
