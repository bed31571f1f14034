"""Claims judged as their entries in workflow/published/claims/ specify.

They compare accuracies, or no study decides them. README.md beside that folder explains the keys. What a comparison
cannot say, a function in the paper's modules does: it forms the pairs to compare, or tells what stands beside them.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from itertools import product
from types import MappingProxyType
from typing import Any

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion
from dpstudy.tables.claims.finding import COMPUTED, Finding, Part, decided, lacking, noted, on_both, on_cells, undecided
from dpstudy.tables.claims.grid import Triples, Value, highest, number
from dpstudy.tables.claims.mehta2023_printed import Grid, Place
from dpstudy.tables.claims.names import METHODS
from dpstudy.tables.claims.scores import Printed, Scores, places, up
from dpstudy.tables.selecting import listed

_NAMED = ("role", "best", "better", "printed", "method")  # the key of a side that names roles, or a method
_SIDES = ("left", "right")
_OTHERS = "others"  # a right side of mehta2023: all rows but those of the left side
_OF_ROLES, _OF_METHODS = {"datasets", "cells", "rising", "at", "above"}, {"up_to", "place"}
Functions = Mapping[str, Callable]
_NONE: Functions = MappingProxyType({})


def finding(claim: Mapping, paper: Printed | None, evidence: Any, functions: Functions = _NONE) -> Finding:
    """The finding on a claim whose entry specifies how it is judged.

    Args:
        claim: its entry.
        paper: what the paper prints by roles; None: its evidence is a grid of methods (mehta2023).
        functions: those that the entry may name.
    """
    printed, told = claim.get("printed", ""), functions[claim["told"]] if "told" in claim else lambda evidence: ""
    if "open" in claim:
        return noted(undecided(claim["open"], printed), here=told(evidence))
    true, printed = functions[claim["computed"]](evidence) if "computed" in claim else (True, printed)
    parts = partial(_parts, paper=paper, evidence=evidence, functions=functions)
    compared, beside = (partial(parts, _several(claim, key)) for key in ("compare", "beside"))
    if not true or "compare" not in claim:
        found = decided(true, COMPUTED, "")
    elif "cells_alone" in claim:
        found = on_cells(compared(evidence.ours), claim["cells_alone"])
    else:
        missing = lacking(claim["roles"]) if "roles" in claim else claim.get("missing")
        found = on_both(evidence, compared, claim.get("about_the_tables", False), missing)
    of_printed, of_ours = (
        ". ".join(str(part) for part in beside(known) if part.counted) for known in (evidence.printed, evidence.ours)
    )
    return noted(noted(found, printed, of_ours), of_printed, told(evidence))


def check(name: str, claim: Mapping, paper: str, roles: Sequence[str], functions: Iterable[str] = ()) -> None:
    """Refuse a claim that compares or names what its paper's evidence, or its modules, lack.

    Args:
        name: the claim's id.
        roles: that the paper's numbers and cells are in; none: it compares methods (mehta2023).
        functions: the names of those that an entry may name.

    Raises:
        StudyError: names the claim, and the name or key that is none.
    """

    def refuse(sentence: str) -> None:
        raise StudyError(f"{paper}.yaml: {name}: {sentence}")

    def known(each: str, allowed: Iterable[str], kind: str) -> None:
        if each not in allowed:
            refuse(f"{each!r} is no {kind}{suggestion(each, allowed)}")

    comparisons = [*_several(claim, "compare"), *_several(claim, "beside")]
    for each in [one[key] for one in (claim, *comparisons) for key in ("computed", "told", "pairs") if key in one]:
        known(each, functions, f"function of the modules of {paper}")
    for one in comparisons:
        if wrong := sorted((_OF_METHODS if roles else _OF_ROLES) & set(one)):
            refuse(f"comparisons of this paper have no key {wrong[0]!r}")
        cells = one.get("cells", [one])
        for spec in [cell[key] for cell in cells for key in (*_SIDES, "rising") if key in cell]:
            if isinstance(spec, Mapping) and ("method" in spec) == bool(roles):
                refuse(f"{dict(spec)} is for {'mehta2023' if roles else 'other papers'}")
            called = next((spec[key] for key in _NAMED if key in spec), ()) if isinstance(spec, Mapping) else spec
            for each in listed(called) if isinstance(called, str | list) else []:
                known(each, roles or (*METHODS, _OTHERS), "role" if roles else "method")


def _several(claim: Mapping, key: str) -> Sequence[Mapping]:
    """The comparisons of an entry, which may have one, several or none."""
    given, shared = claim.get(key, ()), {"datasets": claim["datasets"]} if "datasets" in claim else {}
    return [{**shared, **one} for one in ([given] if isinstance(given, Mapping) else given)]


def _parts(
    comparisons: Sequence[Mapping], known: Any, paper: Printed | None, evidence: Any, functions: Functions
) -> list[Part]:
    """The comparisons as the accuracies in `known`, ours or the printed ones, have them."""
    parts = []
    for one in comparisons:
        triples = _triples(one, known, paper, evidence, functions)
        if triples is None:
            continue
        if one.get("swapped"):
            triples = ((name, right, left) for name, left, right in triples)
        text, margin = (one["over"], None) if "over" in one else (one["not_below"], one.get("margin", 0.0))
        part = Part.of(text, triples, margin)
        if part.counted or not one.get("optional"):
            parts.append(part)
    return parts


def _triples(one: Mapping, known: Any, paper: Printed | None, evidence: Any, functions: Functions) -> Triples | None:
    """What a comparison compares; None where a study has none of its data sets, or does not measure it."""
    if "place" in one:
        known = known.at(*one["place"].split("/"))
    where = _datasets(one.get("datasets", ()), paper, known) if paper else known.datasets
    if not where and ("datasets" in one or "place" in one):
        return None  # a claim about several data sets is judged on those that are there
    if "pairs" in one:
        of_some, function = {"datasets": where} if "datasets" in one else {}, functions[one["pairs"]]
        whole = {"evidence": evidence} if "evidence" in signature(function).parameters else {}
        return function(known, **one.get("with", {}), **of_some, **whole)
    return _of_roles(one, where, paper, evidence, known) if paper else _of_methods(one, known)


def _datasets(only: Sequence[str], paper: Printed, known: Scores) -> list[str]:
    """The data sets, or these alone; each with its backbones where these count as data sets of their own."""
    if only and paper.by_backbone:
        return [place for data in only for place in places(known, data)]
    return [dataset for dataset in only or known.datasets if dataset in known.datasets]


def _of_roles(one: Mapping, datasets: Sequence[str], paper: Printed, evidence: Any, known: Scores) -> Triples:
    if "rising" in one:
        return up(known.in_order(one["rising"]))
    if "cells" not in one and not isinstance(one["left"], Mapping):
        wanted = math.isinf if one.get("without_privacy") else partial(_within, one)
        sides = product(listed(one["left"]), listed(one["right"]))
        return [triple for pair in sides for triple in known.pairs(*pair, datasets, wanted)]
    value = partial(_value, paper=paper, evidence=evidence, known=known)
    return [
        (
            cell.get("at", name).replace("{epsilon}", number(epsilon)),
            *(value(cell[side], dataset, epsilon) for side in _SIDES),
        )
        for dataset in datasets
        for cell in one.get("cells", [one])
        for name, epsilon in _each({**one, **cell}, dataset, known)
    ]


def _each(one: Mapping, dataset: str, known: Scores) -> list[tuple[str, float]]:
    """(name, epsilon) of a data set at each finite epsilon where a side is `better`, else of it as a whole."""
    if not any("better" in one[side] for side in _SIDES if isinstance(one[side], Mapping)):
        return [(dataset, math.inf)]
    return [(f"{dataset} {number(epsilon)}", epsilon) for epsilon in known.finite(dataset) if _within(one, epsilon)]


def _within(one: Mapping, epsilon: float) -> bool:
    """Whether a comparison is about a finite epsilon."""
    above, below = one.get("above", 0.0), one.get("below", math.inf)
    return one.get("from", 0.0) <= epsilon <= one.get("up_to", math.inf) and above < epsilon < below


def _value(spec: Any, dataset: str, epsilon: float, paper: Printed, evidence: Any, known: Scores) -> Value | None:
    """A number; {role, epsilon}; {best: role or roles, up_to: epsilon}, over finite epsilons; {better: role or roles},
    at this epsilon; or {printed: role}, the best that the paper prints, or {printed: role, epsilon}. Numbers of the
    paper's count beside cells on as many records alone."""
    if not isinstance(spec, Mapping):
        return paper.level(known, dataset, Value(float(spec)))
    if "printed" in spec:
        role, printed = spec["printed"], evidence.printed
        at = printed.get(dataset, role, float(spec["epsilon"])) if "epsilon" in spec else printed.best(dataset, role)
        return paper.level(known, dataset, at)
    if "role" in spec:
        return known.get(dataset, spec["role"], float(spec["epsilon"]))
    if "better" in spec:  # of what was not run it is not known whether it is worse
        values = [known.get(dataset, role, epsilon) for role in listed(spec["better"])]
        return highest(values) if all(values) else None
    most = epsilon if spec.get("up_to") == "ε" else spec.get("up_to", math.inf)
    return highest(known.best(dataset, role, most) for role in listed(spec["best"]))


def _of_methods(one: Mapping, grid: Grid) -> Triples:
    if one.get("without_privacy"):
        where: Iterable[tuple[object, Place, float]] = ((place, place, math.inf) for place in grid.datasets)
    else:
        where = (cell for cell in grid.cells() if _within(one, cell[2]))
    left, right = one["left"], one["right"]
    for name, place, epsilon in where:
        if right == _OTHERS:
            yield name, *grid.leading(place, epsilon, _rows(left, grid))
        else:
            yield name, _of_method(left, grid, place, epsilon), _of_method(right, grid, place, epsilon)


def _rows(spec: Any, grid: Grid) -> list[tuple[str, int]]:
    """The rows of a method, or of several; of {method, epochs} this alone."""
    if isinstance(spec, Mapping):
        return [(spec["method"], spec["epochs"])]
    return [row for row in grid.rows if row[0] in listed(spec)]


def _of_method(spec: Any, grid: Grid, place: Place, epsilon: float) -> Value | None:
    """The best of a method, or of several, over their epochs; of {method, epochs} alone, or {method, but: epochs}."""
    if not isinstance(spec, Mapping):
        return grid.best_of(place, epsilon, listed(spec))
    if "epochs" in spec:
        return grid.get(place, (spec["method"], spec["epochs"]), epsilon)
    return grid.best_of(place, epsilon, [spec["method"]], without=[(spec["method"], spec["but"])])
