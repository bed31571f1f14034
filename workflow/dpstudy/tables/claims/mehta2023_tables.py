"""Claims of mehta2023 about its own tables: headlines, captions, comparisons of sums (Tables 1-4)."""

import math
from collections.abc import Iterator

from dpstudy.tables.claims.finding import PRINTED, Evidence, Finding, Part, cells, decided, number, on_both, undecided
from dpstudy.tables.claims.grid import Grid, Place
from dpstudy.tables.claims.mehta2023_methods import FC, LS, NEWTON

IMAGENET, CIFAR10, CIFAR100 = "ImageNet-1k", "CIFAR-10", "CIFAR-100"
BEFORE = ("previous SOTA", "DP-SGD (classifier layer)")  # rows of Table 1 that are not the paper's own
MODERATE = 0.5
BEST_WITHOUT_PRIVACY, WHOLE_NETWORK = 91.0, 90.45  # what the paper cites: Yu et al. (2022b), Zhai et al. (2021)
_JFT = "needs the features of a network pre-trained on JFT-3B, which is not public"


def _table_1(evidence: Evidence, own: bool) -> dict[tuple[str, float], float]:
    return {
        (row["dataset"], float(row["epsilon"])): float(row["value"])
        for row in evidence.rows
        if row["table"] == "1" and (row["method"] in BEFORE) != own
    }


def _printed(evidence: Evidence, dataset: str, method: str, epochs: int, epsilon: float) -> float:
    """A cell of Tables 2-4 on JFT-3B features."""
    return evidence.printed.values[Place(dataset, "JFT-3B"), method, epochs, epsilon].number


def headline(evidence: Evidence) -> Finding:
    """Judge the claim: 88.0 at epsilon 8 and 84.3 at 0.1 on ImageNet-1k."""
    table_1 = _table_1(evidence, own=True)
    pairs = [
        (table_1[IMAGENET, 8.0], _printed(evidence, IMAGENET, FC, 10, 8.0)),
        (table_1[IMAGENET, 0.1], _printed(evidence, IMAGENET, FC, 1, 0.1)),
    ]
    text = "; ".join(f"Table 1 {one}, Table 2 {two}" for one, two in pairs)
    if pairs != [(88.0, 88.0), (84.3, 84.3)]:
        return decided(False, PRINTED, text)
    return undecided(f"A measurement that {_JFT}.", f"The tables agree with the abstract: {text}")


def beats_the_state_of_the_art(evidence: Evidence) -> Finding:
    """Judge the claim: Table 1 exceeds the previous state of the art."""
    before, new = _table_1(evidence, own=False), _table_1(evidence, own=True)
    losses = [
        f"{dataset} {number(epsilon)}" for (dataset, epsilon), value in before.items() if new[dataset, epsilon] <= value
    ]
    smallest = min(new[key] - value for key, value in before.items())
    count = f"{len(before) - len(losses)} of {len(before)}"
    text = f"{count} cells of Table 1 above the previous result; smallest difference {smallest:.1f}"
    here = f"Our cells have no previous result on the same features to beat; the paper's {_JFT}."
    return decided(not losses, PRINTED, text, here)


def summary_differs_once(evidence: Evidence) -> Finding:
    """Judge the claim: Table 1 equals the best of Tables 2-4, except for one cell."""
    differing = []
    for (dataset, epsilon), value in _table_1(evidence, own=True).items():
        grid = evidence.printed.at(dataset=dataset)
        best = max(highest.number for place in grid.places if (highest := grid.best(place, epsilon)))
        if best != value:
            differing.append(f"{dataset} ε = {number(epsilon)}: {value} in Table 1, {best} in the detailed one")
    return decided(len(differing) == 1, PRINTED, "; ".join(differing) or "No cell differs")


def distance_to_the_best(evidence: Evidence) -> Finding:
    """Judge the caption's claim of 1.1 points between 88.9 and 91."""
    value = _printed(evidence, IMAGENET, NEWTON, 10, math.inf)
    distance = BEST_WITHOUT_PRIVACY - value
    return decided(abs(distance - 1.1) < 0.05, PRINTED, f"91 - {value} = {distance:.1f}, said to be 1.1")


def last_layer_is_close(evidence: Evidence) -> Finding:
    """Judge the claim: without privacy the last layer is within 2 points of the whole network."""
    value = _printed(evidence, IMAGENET, NEWTON, 10, math.inf)
    text = f"90.45 (cited, whole network) - {value} = {WHOLE_NETWORK - value:.2f}, below 2"
    return decided(WHOLE_NETWORK - value < 2, PRINTED, text, f"Not measured: {_JFT}.")


def private_is_close(evidence: Evidence) -> Finding:
    """Judge the claim: epsilon 8 is within 2.5 points of the non-private whole network, and 3 of the best."""
    value = _printed(evidence, IMAGENET, FC, 10, 8.0)
    near, far = WHOLE_NETWORK - value, BEST_WITHOUT_PRIVACY - value
    text = f"90.45 (cited) - {value} = {near:.2f}, below 2.5; 91 (cited) - {value} = {far:.1f}, said to be 3"
    return decided(near < 2.5 and abs(far - 3) < 0.05, PRINTED, text, f"Not measured: {_JFT}.")


def _winner(grid: Grid, place: Place, epsilon: float, wins: list[tuple[str, int]]) -> tuple:
    """(best of the rows `wins`, best of all others): whether a caption names the best rows."""
    rows = [grid.get(place, *row, epsilon) for row in wins]
    best = max((v for v in rows if v and v.mean is not None), key=lambda v: v.number, default=None)
    return best, grid.best(place, epsilon, without=wins)


def _rows(grid: Grid, method: str) -> list[tuple[str, int]]:
    return [row for row in grid.rows if row[0] == method]


def imagenet_jft(evidence: Evidence) -> Finding:
    """Judge the claim on Table 2, JFT: FC is best for epsilon in [0.1, 8], LS below."""

    def parts(grid: Grid) -> list[Part]:
        grid = grid.at(IMAGENET, "JFT-3B")
        return [
            Part.of(
                "FC best of all at ε ≥ 0.1",
                ((name, *_winner(grid, p, e, _rows(grid, FC))) for name, p, e in cells(grid, 0.1)),
            ),
            Part.of(
                "LS best of all at ε < 0.1",
                ((name, *_winner(grid, p, e, _rows(grid, LS))) for name, p, e in cells(grid, high=0.1)),
            ),
        ]

    return on_both(evidence, parts, about_the_tables=True)


def imagenet_21k(evidence: Evidence) -> Finding:
    """Judge the claim on Table 2, ImageNet-21k: FC with 10 epochs is best throughout."""

    def parts(grid: Grid) -> list[Part]:
        grid = grid.at(IMAGENET, "ImageNet-21k")
        return [
            Part.of(
                "FC with 10 epochs best of all",
                ((name, *_winner(grid, p, e, [(FC, 10)])) for name, p, e in cells(grid)),
            )
        ]

    return on_both(evidence, parts, about_the_tables=True)


def cifar10(evidence: Evidence) -> Finding:
    """Judge the claim on Table 3: FC with 10 epochs is best, except that LS is for JFT at epsilon 0.01."""

    def split(grid: Grid, exception: bool) -> Iterator[tuple]:
        for name, place, epsilon in cells(grid):
            if exception == ((place.pretraining, epsilon) == ("JFT-3B", 0.01)):
                wins = _rows(grid, LS) if exception else [(FC, 10)]
                yield (name, *_winner(grid, place, epsilon, wins))

    def parts(grid: Grid) -> list[Part]:
        grid = grid.at(CIFAR10)
        comparisons = [Part.of("FC with 10 epochs best of all", split(grid, exception=False))]
        if Place(CIFAR10, "JFT-3B") in grid.places:
            comparisons.append(Part.of("LS best at JFT-3B 0.01", split(grid, exception=True)))
        return comparisons

    return on_both(evidence, parts, about_the_tables=True)


def cifar100(evidence: Evidence) -> Finding:
    """Judge the claim on Table 4: FC is best at moderate epsilon, LS at very strict ones by pre-training."""

    def parts(grid: Grid) -> list[Part]:
        grid = grid.at(CIFAR100)
        strictest = min(grid.epsilons, default=0.0)
        return [
            Part.of(
                f"FC best of all at ε ≥ {number(MODERATE)}",
                ((name, *_winner(grid, p, e, _rows(grid, FC))) for name, p, e in cells(grid, MODERATE)),
            ),
            Part.of(
                "LS best of all at the smallest ε",
                ((n, *_winner(grid, p, e, _rows(grid, LS))) for n, p, e in cells(grid, high=strictest * 1.001)),
            ),
        ]

    return on_both(evidence, parts, about_the_tables=True)


def monotone(evidence: Evidence) -> Finding:
    """Judge the claim: accuracy grows with epsilon, except in a few cells."""

    def parts(grid: Grid) -> list[Part]:
        triples = (
            (
                f"{place} {method} {epochs} ep. {number(low)} to {number(high)}",
                grid.get(place, method, epochs, high),
                grid.get(place, method, epochs, low),
            )
            for place in grid.places
            for method, epochs in grid.rows
            for low, high in zip(grid.epsilons, grid.epsilons[1:], strict=False)
        )
        return [Part.of("Accuracy at an ε over that at the next smaller", triples)]

    return on_both(evidence, parts, about_the_tables=True)


def figure_1(evidence: Evidence) -> Finding:
    """Judge the claim: the series of Figure 1 are the DP-FC rows of the tables."""
    series = {str(key[0]) for key in evidence.printed.values if key[1] == FC}
    text = f"DP-FC rows stand in Tables 2-4 for {len(series)} series: {', '.join(sorted(series))}"
    return undecided("The figure is an image whose points and range the text does not give.", text)
