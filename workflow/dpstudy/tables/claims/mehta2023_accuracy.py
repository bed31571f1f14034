"""Claims of mehta2023 about accuracies: its own tables (headlines, captions, comparisons of sums, Tables 1-5), methods
(abstract, sections 1 and 2) and pre-training (sections 1 and 3.1, appendix C): judges, and what comparisons in
workflow/published/claims/mehta2023.yaml compare."""

import math
from itertools import pairwise, product

from dpstudy.tables.claims.finding import COMPUTED, PRINTED, Finding, Part, decided, judged, undecided
from dpstudy.tables.claims.grid import Triples, Value, average, number
from dpstudy.tables.claims.mehta2023_printed import Grid, Place
from dpstudy.tables.claims.names import CLASSES
from dpstudy.tables.claims.scores import Evidence

LS, NEWTON, FC, ADAM = "DP-LS", "DP-Newton", "DP-FC", "DP-Adam"
_STRICT = 1.0  # "low" epsilons lie below it
IMAGENET = "ImageNet-1k"
BEFORE = ("previous SOTA", "DP-SGD (classifier layer)")  # rows of Table 1 that are not the paper's own
BEST_WITHOUT_PRIVACY, WHOLE_NETWORK = 91.0, 90.45  # what the paper cites: Yu et al. (2022b), Zhai et al. (2021)
_JFT = "needs the features of a network pre-trained on JFT-3B, which is not public"
_DECAY_IN_TEXT = 0.1  # appendix C.2, "which gets multiplied by the learning rate"


def _table_1(evidence: Evidence, own: bool) -> dict[tuple[str, float], float]:
    rows = [row for row in evidence.rows if row["table"] == "1" and (row["method"] in BEFORE) != own]
    return {(row["dataset"], float(row["epsilon"])): float(row["value"]) for row in rows}


def _printed(evidence: Evidence, method: str, epochs: int, epsilon: float) -> float:
    """A cell of Table 2 on JFT-3B features."""
    return evidence.printed.values[Place(IMAGENET, "JFT-3B"), (method, epochs), epsilon].number


def headline(evidence: Evidence) -> Finding:
    """Judge the claim: 88.0 at epsilon 8 and 84.3 at 0.1 on ImageNet-1k."""
    table_1 = _table_1(evidence, own=True)
    pairs = [(table_1[IMAGENET, e], _printed(evidence, FC, epochs, e)) for epochs, e in ((10, 8.0), (1, 0.1))]
    text = "; ".join(f"Table 1 {one}, Table 2 {two}" for one, two in pairs)
    if pairs != [(88.0, 88.0), (84.3, 84.3)]:
        return decided(False, PRINTED, text)
    return undecided(f"A measurement that {_JFT}.", f"The tables agree with the abstract: {text}")


def beats_the_state_of_the_art(evidence: Evidence) -> Finding:
    """Judge the claim: Table 1 exceeds the previous state of the art."""
    before, new = _table_1(evidence, own=False), _table_1(evidence, own=True)
    above = [new[key] - value for key, value in before.items()]
    text = f"{sum(lead > 0 for lead in above)} of {len(above)} cells of Table 1 above the previous result; "
    text += f"smallest difference {min(above):.1f}"
    here = f"Our cells have no previous result on the same features to beat; the paper's {_JFT}."
    return decided(min(above) > 0, PRINTED, text, here)


def summary_differs_once(evidence: Evidence) -> Finding:
    """Judge the claim: Table 1 equals the best of Tables 2-4, except for one cell."""
    differing = []
    for (dataset, epsilon), value in _table_1(evidence, own=True).items():
        grid = evidence.printed.at(dataset=dataset)
        best = max(highest.number for place in grid.datasets if (highest := grid.best_of(place, epsilon)))
        if best != value:
            differing.append(f"{dataset} ε = {number(epsilon)}: {value} in Table 1, {best} in the detailed one")
    return decided(len(differing) == 1, PRINTED, "; ".join(differing) or "No cell differs")


def distance_to_the_best(evidence: Evidence) -> Finding:
    """Judge the caption's claim of 1.1 points between 88.9 and 91."""
    value = _printed(evidence, NEWTON, 10, math.inf)
    distance = BEST_WITHOUT_PRIVACY - value
    return decided(abs(distance - 1.1) < 0.05, PRINTED, f"91 - {value} = {distance:.1f}, said to be 1.1")


def last_layer_is_close(evidence: Evidence) -> Finding:
    """Judge the claim: without privacy the last layer is within 2 points of the whole network."""
    value = _printed(evidence, NEWTON, 10, math.inf)
    text = f"90.45 (cited, whole network) - {value} = {WHOLE_NETWORK - value:.2f}, below 2"
    return decided(WHOLE_NETWORK - value < 2, PRINTED, text, f"Not measured: {_JFT}.")


def private_is_close(evidence: Evidence) -> Finding:
    """Judge the claim: epsilon 8 is within 2.5 points of the non-private whole network, and 3 of the best."""
    value = _printed(evidence, FC, 10, 8.0)
    near, far = WHOLE_NETWORK - value, BEST_WITHOUT_PRIVACY - value
    text = f"90.45 (cited) - {value} = {near:.2f}, below 2.5; 91 (cited) - {value} = {far:.1f}, said to be 3"
    return decided(near < 2.5 and abs(far - 3) < 0.05, PRINTED, text, f"Not measured: {_JFT}.")


def decay_given_twice(evidence: Evidence) -> Finding:
    """Judge the claim: 0.1 times the learning rate equals the caption's 0.0001."""
    table = {row["parameter"]: row["value"] for row in evidence.hyperparameters if row["table"] == "5"}
    rate, decay = float(table["base_learning_rate"]), float(table["weight_decay"])
    text = f"{_DECAY_IN_TEXT} * {rate:g} = {_DECAY_IN_TEXT * rate:g}; the caption has {decay:g}"
    return decided(math.isclose(_DECAY_IN_TEXT * rate, decay), PRINTED, text)


def ten_steps_on_cifar10(grid: Grid) -> Triples:
    """(cell, FC with 10 epochs, best of all others), but at the one cell where the caption has LS best."""
    for name, place, epsilon in grid.cells():
        if (place.pretraining, epsilon) != ("JFT-3B", 0.01):
            yield name, *grid.leading(place, epsilon, [(FC, 10)])


def at_the_smallest_epsilon(grid: Grid) -> Triples:
    """(cell, LS, best of all others) at the smallest epsilon."""
    rows = [row for row in grid.rows if row[0] == LS]
    return [(name, *grid.leading(p, e, rows)) for name, p, e in grid.cells() if e == grid.budgets[0]]


def rising(grid: Grid) -> Triples:
    """(cell and two epsilons, its accuracy at the larger, at the smaller)."""
    for place, row, (low, high) in product(grid.datasets, grid.rows, pairwise(grid.budgets)):
        name = f"{place} {row[0]} {row[1]} ep. {number(low)} to {number(high)}"
        yield name, grid.get(place, row, high), grid.get(place, row, low)


def _gap(left: Value | None, right: Value | None) -> Value | None:
    """The difference left - right; None where one is missing or only a bound."""
    return None if left is None or right is None else left - right


def _lead(grid: Grid, place: Place, epsilon: float, method: str, other: str) -> Value | None:
    return _gap(grid.best_of(place, epsilon, [method]), grid.best_of(place, epsilon, [other]))


def leads_over_adam(grid: Grid) -> Triples:
    """(place, mean lead of least squares over DP-Adam at strict epsilons, at others)."""

    def lead(place: Place, low: float, high: float) -> Value | None:
        return average(_lead(grid, place, e, LS, ADAM) for _, p, e in grid.cells(low, high) if p == place)

    return [(place, lead(place, 0.0, _STRICT), lead(place, _STRICT, math.inf)) for place in grid.datasets]


def newtons_leads(grid: Grid) -> Triples:
    """(place, Newton's lead over least squares without privacy, at the smallest epsilon)."""
    smallest = min(grid.budgets, default=math.inf)
    return [(p, _lead(grid, p, math.inf, NEWTON, LS), _lead(grid, p, smallest, NEWTON, LS)) for p in grid.datasets]


def noise_and_classes(evidence: Evidence) -> Finding:
    """Judge the claim: Newton's noise grows with the square root of m, that of least squares does not.

    Algorithms 2 and 3 say so; that the lead of least squares grows with m is what would follow.
    """
    noise = ", ".join(f"sqrt({m}) = {math.sqrt(m):.1f}" for m in (10, 100, 1000))
    name = "Lead of LS over Newton with more classes over that with fewer"
    parts = (Part.of(name, _leads_by_classes(grid)) for grid in (evidence.printed, evidence.ours))
    (_, printed), (_, here) = (judged([part]) for part in parts)
    return decided(True, COMPUTED, f"By Algorithms 2 and 3, per class: {noise} times σC against σC. {printed}", here)


def _leads_by_classes(grid: Grid) -> Triples:
    classes = CLASSES | {run.data: run.metrics["classes"] for run in grid.runs if run.data not in CLASSES}
    by_classes = sorted({place.dataset for place in grid.datasets}, key=lambda name: (classes[name], name))
    for small, large in pairwise(by_classes):
        for name, place, epsilon in grid.at(dataset=large).cells() if classes[small] < classes[large] else ():
            with_fewer = _lead(grid, Place(small, place.pretraining), epsilon, LS, NEWTON)
            yield f"{name} against {small}", _lead(grid, place, epsilon, LS, NEWTON), with_fewer


def _gain(grid: Grid, dataset: str, epsilon: float) -> Value | None:
    """What FC with 10 epochs gains by the most pre-training over the least."""
    return _gap(*(grid.get(Place(dataset, grid.order[i]), (FC, 10), epsilon) for i in (-1, 0)))


def _with_the_most(grid: Grid) -> list[str]:
    """The data sets with features of the most pre-training, where there is more than one."""
    return [p.dataset for p in grid.datasets if len(grid.order) > 1 and p.pretraining == grid.order[-1]]


def gains(grid: Grid) -> Triples:
    """(data set, gain by pre-training at epsilon 1, at 8)."""
    return [(dataset, _gain(grid, dataset, 1.0), _gain(grid, dataset, 8.0)) for dataset in _with_the_most(grid)]


def gains_when_strict(grid: Grid) -> Triples:
    """(data set and epsilon below 1, gain by pre-training there, at 1)."""
    for dataset, e in product(_with_the_most(grid), grid.budgets):
        if e < 1:
            yield f"{dataset} {number(e)}", _gain(grid, dataset, e), _gain(grid, dataset, 1.0)


def more_pretraining(grid: Grid) -> Triples:
    """(cell, its accuracy, that with the next less pre-training)."""
    for less, more in pairwise(grid.order):
        for place, row, epsilon in product(grid.at(pretraining=more).datasets, grid.rows, [*grid.budgets, math.inf]):
            name = f"{place.dataset} {row[0]} {row[1]} ep. {number(epsilon)}, {more} over {less}"
            yield name, grid.get(place, row, epsilon), grid.get(Place(place.dataset, less), row, epsilon)
