"""Claims of mehta2023 that compare methods with each other (abstract, sections 1, 2 and 3.2)."""

import math

from dpstudy.tables.claims.finding import COMPUTED, Evidence, Finding, Part, cells, decided, judged, on_both
from dpstudy.tables.claims.grid import Grid, Place, Value, average

LS, NEWTON, FC, ADAM = "DP-LS", "DP-Newton", "DP-FC", "DP-Adam"
STRICT, LARGE = 1.0, 4.0  # "low" epsilons lie below 1; "large" ones are 4 and 8


def gap(left: Value | None, right: Value | None) -> Value | None:
    """The difference left - right; None where one is missing or only a bound."""
    return None if left is None or right is None else left - right


def least_squares_over_adam(evidence: Evidence) -> Finding:
    """Judge the claim: least squares beats DP-Adam, by more the stricter the privacy."""

    def lead(grid: Grid, place: Place, low: float, high: float = math.inf) -> Value | None:
        return average(
            gap(grid.best(p, e, [LS]), grid.best(p, e, [ADAM])) for _, p, e in cells(grid, low, high) if p == place
        )

    def parts(grid: Grid) -> list[Part]:
        return [
            Part.of(
                "LS over best of Adam",
                ((name, grid.best(p, e, [LS]), grid.best(p, e, [ADAM])) for name, p, e in cells(grid)),
            ),
            Part.of(
                "Mean lead at ε < 1 over that at ε ≥ 1",
                ((p, lead(grid, p, 0.0, STRICT), lead(grid, p, STRICT)) for p in grid.places),
            ),
        ]

    return on_both(evidence, parts)


def newton_when_loose(evidence: Evidence) -> Finding:
    """Judge the claim: least squares wins at low epsilon, Newton at large.

    Newton's benefit shrinks with stricter privacy.
    """

    def parts(grid: Grid) -> list[Part]:
        def lead(place: Place, epsilon: float) -> Value | None:
            return gap(grid.best(place, epsilon, [NEWTON]), grid.best(place, epsilon, [LS]))

        return [
            Part.of(
                "At ε < 1, LS over best of Newton",
                ((name, grid.best(p, e, [LS]), grid.best(p, e, [NEWTON])) for name, p, e in cells(grid, high=STRICT)),
            ),
            Part.of(
                "At ε ≥ 4, best of Newton over LS",
                ((name, grid.best(p, e, [NEWTON]), grid.best(p, e, [LS])) for name, p, e in cells(grid, LARGE)),
            ),
            Part.of(
                "Newton's lead over LS without privacy over that at the smallest ε",
                ((p, lead(p, math.inf), lead(p, min(grid.epsilons, default=math.inf))) for p in grid.places),
            ),
        ]

    return on_both(evidence, parts)


def noise_and_classes(evidence: Evidence) -> Finding:
    """Judge the claim: Newton's noise grows with the square root of m, that of least squares does not.

    Algorithms 2 and 3 say so; that the lead of least squares grows with m is what would follow.
    """

    def parts(grid: Grid) -> list[Part]:
        by_classes = sorted({place.dataset for place in grid.places}, key=lambda name: grid.classes.get(name, 0))
        triples = []
        for small, large in zip(by_classes, by_classes[1:], strict=False):
            if grid.classes.get(small) == grid.classes.get(large):
                continue
            for name, place, epsilon in cells(grid.at(dataset=large)):
                here, with_fewer = (
                    gap(grid.best(p, epsilon, [LS]), grid.best(p, epsilon, [NEWTON]))
                    for p in (place, Place(small, place.pretraining))
                )
                triples.append((f"{name} against {small}", here, with_fewer))
        return [Part.of("Lead of LS over Newton with more classes over that with fewer", triples)]

    noise = ", ".join(f"sqrt({m}) = {math.sqrt(m):.1f}" for m in (10, 100, 1000))
    text = f"By Algorithms 2 and 3, per class: {noise} times σC against σC. {judged(parts(evidence.printed))[1]}"
    return decided(True, COMPUTED, text, judged(parts(evidence.ours))[1])
