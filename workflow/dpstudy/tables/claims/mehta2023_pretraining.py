"""Claims of mehta2023 about pre-training (sections 1 and 3.1, appendices C and D)."""

import math
from dataclasses import replace

from dpstudy.tables.claims.finding import (
    PRINTED,
    Evidence,
    Finding,
    Part,
    decided,
    number,
    on_both,
    on_cells,
)
from dpstudy.tables.claims.grid import Grid, Place, Value
from dpstudy.tables.claims.mehta2023_methods import FC, gap

_ENLARGED = ("CIFAR-10", "CIFAR-100")  # whose small images networks see enlarged
_BIG = 1.0  # points from which on a difference reads as a big one
_DECAY_IN_TEXT = 0.1  # appendix C.2, "which gets multiplied by the learning rate"


def helps_more_when_strict(evidence: Evidence) -> Finding:
    """Judge the claim: the best pre-training gains more over the least at epsilon 1 than at 8, and more below."""

    def parts(grid: Grid) -> list[Part]:
        least, most = (grid.order[0], grid.order[-1]) if len(grid.order) > 1 else ("", "")
        places = [place for place in grid.places if place.pretraining == most]

        def gain(place: Place, epsilon: float) -> Value | None:
            weaker = Place(place.dataset, least)
            return gap(grid.get(place, FC, 10, epsilon), grid.get(weaker, FC, 10, epsilon))

        below = [epsilon for epsilon in grid.epsilons if epsilon < 1]
        return [
            Part.of(
                "Gain of FC with 10 epochs at ε = 1 over that at 8",
                ((place.dataset, gain(place, 1.0), gain(place, 8.0)) for place in places),
            ),
            Part.of(
                "Gain at an ε < 1 over that at 1",
                ((f"{p.dataset} {number(e)}", gain(p, e), gain(p, 1.0)) for p in places for e in below),
            ),
        ]

    return on_both(evidence, parts)


def grows_with_pretraining(evidence: Evidence) -> Finding:
    """Judge the claim: accuracy grows with the model and its pre-training set."""

    def parts(grid: Grid) -> list[Part]:
        triples = (
            (
                f"{place.dataset} {method} {epochs} ep. {number(epsilon)}, {more} over {less}",
                grid.get(place, method, epochs, epsilon),
                grid.get(Place(place.dataset, less), method, epochs, epsilon),
            )
            for less, more in zip(grid.order, grid.order[1:], strict=False)
            for place in grid.places
            if place.pretraining == more
            for method, epochs in grid.rows
            for epsilon in [*grid.epsilons, math.inf]
        )
        return [Part.of("More pre-training over less", triples)]

    return on_both(evidence, parts)


def resolution(evidence: Evidence) -> Finding:
    """Judge the claim: higher input resolution makes a big difference for CIFAR, with privacy and without."""

    def part(text: str, private: bool) -> Part:
        return Part.of(
            text,
            (
                (
                    f"{place.dataset} {method} {epochs} ep. {number(epsilon)}, {place.pretraining} over {less}",
                    ours,
                    replace(below, mean=below.number + _BIG),
                )
                for grid in evidence.resolutions
                for less, more in zip(grid.order, grid.order[1:], strict=False)
                for (place, method, epochs, epsilon), ours in grid.values.items()
                if place.pretraining == more and place.dataset in _ENLARGED and math.isinf(epsilon) is not private
                if (below := grid.get(Place(place.dataset, less), method, epochs, epsilon))
            ),
        )

    return on_cells(
        [
            part(f"Larger images more than {_BIG:g} points over the next smaller, with privacy", True),
            part("The same without privacy", False),
        ],
        "The study has no cells on CIFAR at several sizes of the images (resolutions)",
    )


def decay_given_twice(evidence: Evidence) -> Finding:
    """Judge the claim: 0.1 times the learning rate equals the caption's 0.0001."""
    table = {row["parameter"]: row["value"] for row in evidence.hyperparameters if row["table"] == "5"}
    rate, decay = float(table["base_learning_rate"]), float(table["weight_decay"])
    text = f"{_DECAY_IN_TEXT} * {rate:g} = {_DECAY_IN_TEXT * rate:g}; the caption has {decay:g}"
    return decided(math.isclose(_DECAY_IN_TEXT * rate, decay), PRINTED, text)
