"""Claims of mehta2023 about methods (abstract, sections 1 and 2) and pre-training (sections 1 and 3.1, appendices C and
D): what their comparisons in workflow/published/claims/mehta2023.yaml compare."""

import math
from dataclasses import replace
from itertools import pairwise

from dpstudy.tables.claims.finding import (
    COMPUTED,
    Evidence,
    Finding,
    Part,
    Triples,
    cells,
    decided,
    judged,
    number,
    on_cells,
)
from dpstudy.tables.claims.grid import Grid, Place, Value, average

LS, NEWTON, FC, ADAM = "DP-LS", "DP-Newton", "DP-FC", "DP-Adam"
_STRICT = 1.0  # "low" epsilons lie below it
_ENLARGED = ("CIFAR-10", "CIFAR-100")  # whose small images networks see enlarged
_BIG = 1.0  # points from which on a difference reads as a big one


def _gap(left: Value | None, right: Value | None) -> Value | None:
    """The difference left - right; None where one is missing or only a bound."""
    return None if left is None or right is None else left - right


def _lead(grid: Grid, place: Place, epsilon: float, method: str, other: str) -> Value | None:
    return _gap(grid.best(place, epsilon, [method]), grid.best(place, epsilon, [other]))


def leads_over_adam(grid: Grid) -> Triples:
    """(place, mean lead of least squares over DP-Adam at strict epsilons, at others)."""

    def lead(place: Place, low: float, high: float) -> Value | None:
        return average(_lead(grid, place, e, LS, ADAM) for _, p, e in cells(grid, low, high) if p == place)

    return [(place, lead(place, 0.0, _STRICT), lead(place, _STRICT, math.inf)) for place in grid.places]


def newtons_leads(grid: Grid) -> Triples:
    """(place, Newton's lead over least squares without privacy, at the smallest epsilon)."""
    smallest = min(grid.epsilons, default=math.inf)
    return [(p, _lead(grid, p, math.inf, NEWTON, LS), _lead(grid, p, smallest, NEWTON, LS)) for p in grid.places]


def noise_and_classes(evidence: Evidence) -> Finding:
    """Judge the claim: Newton's noise grows with the square root of m, that of least squares does not.

    Algorithms 2 and 3 say so; that the lead of least squares grows with m is what would follow.
    """
    noise = ", ".join(f"sqrt({m}) = {math.sqrt(m):.1f}" for m in (10, 100, 1000))
    (_, printed), (_, here) = (judged([_leads_by_classes(grid)]) for grid in (evidence.printed, evidence.ours))
    return decided(True, COMPUTED, f"By Algorithms 2 and 3, per class: {noise} times σC against σC. {printed}", here)


def _leads_by_classes(grid: Grid) -> Part:
    by_classes = sorted({place.dataset for place in grid.places}, key=lambda name: grid.classes.get(name, 0))
    triples = []
    for small, large in pairwise(by_classes):
        if grid.classes.get(small) == grid.classes.get(large):
            continue
        for name, place, epsilon in cells(grid.at(dataset=large)):
            with_fewer = _lead(grid, Place(small, place.pretraining), epsilon, LS, NEWTON)
            triples.append((f"{name} against {small}", _lead(grid, place, epsilon, LS, NEWTON), with_fewer))
    return Part.of("Lead of LS over Newton with more classes over that with fewer", triples)


def _gain(grid: Grid, dataset: str, epsilon: float) -> Value | None:
    """What FC with 10 epochs gains by the most pre-training over the least."""
    return _gap(*(grid.get(Place(dataset, grid.order[i]), FC, 10, epsilon) for i in (-1, 0)))


def _with_the_most(grid: Grid) -> list[str]:
    """The data sets with features of the most pre-training, where there is more than one."""
    return [p.dataset for p in grid.places if len(grid.order) > 1 and p.pretraining == grid.order[-1]]


def gains(grid: Grid) -> Triples:
    """(data set, gain by pre-training at epsilon 1, at 8)."""
    return [(dataset, _gain(grid, dataset, 1.0), _gain(grid, dataset, 8.0)) for dataset in _with_the_most(grid)]


def gains_when_strict(grid: Grid) -> Triples:
    """(data set and epsilon below 1, gain by pre-training there, at 1)."""
    return [
        (f"{dataset} {number(e)}", _gain(grid, dataset, e), _gain(grid, dataset, 1.0))
        for dataset in _with_the_most(grid)
        for e in grid.epsilons
        if e < 1
    ]


def more_pretraining(grid: Grid) -> Triples:
    """(cell, its accuracy, that with the next less pre-training)."""
    return [
        (
            f"{place.dataset} {method} {epochs} ep. {number(epsilon)}, {more} over {less}",
            grid.get(place, method, epochs, epsilon),
            grid.get(Place(place.dataset, less), method, epochs, epsilon),
        )
        for less, more in pairwise(grid.order)
        for place in grid.places
        if place.pretraining == more
        for method, epochs in grid.rows
        for epsilon in [*grid.epsilons, math.inf]
    ]


def resolution(evidence: Evidence) -> Finding:
    """Judge the claim: higher input resolution makes a big difference for CIFAR, with privacy and without."""

    def triples(private: bool) -> Triples:
        return [
            (
                f"{place.dataset} {method} {epochs} ep. {number(epsilon)}, {place.pretraining} over {less}",
                ours,
                replace(below, mean=below.number + _BIG),
            )
            for grid in evidence.resolutions
            for less, more in pairwise(grid.order)
            for (place, method, epochs, epsilon), ours in grid.values.items()
            if place.pretraining == more and place.dataset in _ENLARGED and math.isinf(epsilon) is not private
            if (below := grid.get(Place(place.dataset, less), method, epochs, epsilon))
        ]

    parts = [
        Part.of(f"Larger images more than {_BIG:g} points over the next smaller, with privacy", triples(private=True)),
        Part.of("The same without privacy", triples(private=False)),
    ]
    return on_cells(parts, "The study has no cells on CIFAR at several sizes of the images (resolutions)")
