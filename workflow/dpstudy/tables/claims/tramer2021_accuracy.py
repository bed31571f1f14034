"""Claims of tramer2021 about accuracies at a budget, and without one (sections 1 to 3, appendices C.4, C.5, D.4)."""

import math
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter

from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.claims.finding import (
    CELLS,
    FAILS,
    HOLDS,
    Finding,
    Part,
    by_roles,
    number,
    on_cells,
    undecided,
)
from dpstudy.tables.claims.grid import Value, compare
from dpstudy.tables.claims.names import MODELS
from dpstudy.tables.claims.role_evidence import Evidence, curve_value
from dpstudy.tables.claims.scores import Run, Scores
from dpstudy.tables.claims.training_accuracy import gap, on_training
from dpstudy.tables.claims.tramer2021_printed import PRIOR, level

MNIST, FASHION, CIFAR = "MNIST", "Fashion-MNIST", "CIFAR-10"
_FEWER = "Cells on fewer records than the paper's are not compared with its numbers"
_PRIOR_CIFAR = (66.2, 7.53)  # the best CNN before, and its epsilon
_STATED_CIFAR = 2.6  # where the paper matches it
_ALIKE = 0.2  # points that Table 19 differs by at most


def linear_over_cnns(evidence: Evidence) -> Finding:
    """Judge the claim: linear models on ScatterNet features beat CNNs at every epsilon up to 3."""

    def along(scores: Scores) -> list[tuple[str, Value | None, Value]]:
        return [
            (f"{run.dataset} {point.spent:.2f}", curve_value(linear, point.spent), point.accuracy)
            for run in scores.of_role("cnn")
            for linear in scores.of_role("linear")
            if (linear.dataset, linear.n, linear.epsilon) == (run.dataset, run.n, run.epsilon)
            for point in run.curve
            if point.spent is not None and point.spent <= 3
        ]

    def parts(scores: Scores) -> list[Part]:
        at_their_best = [(d, scores.best(d, "linear", 3), scores.best(d, PRIOR)) for d in scores.datasets]
        every = [
            Part.of("Linear over CNN", scores.pairs("linear", "cnn")),
            Part.of("Linear over earlier results at the same ε", scores.pairs("linear", PRIOR)),
            Part.not_below("Linear up to ε = 3 not below the best earlier result at any ε", at_their_best),
            Part.of("Along training, when the CNN had spent as much", along(scores)),
        ]
        return [every[0], *(part for part in every[1:] if part.counted)]  # a study may compare in one way only

    return by_roles(evidence, parts, "linear and cnn")


def budget_on_cifar(evidence: Evidence) -> Finding:
    """Judge the claim: 66.2 % at epsilon 7.53 is matched at 2.6."""
    goal, before = _PRIOR_CIFAR
    printed = f"e^({before} - {_STATED_CIFAR}) = {math.exp(before - _STATED_CIFAR):.0f}; the text has 134"
    runs = [run for run in evidence.ours.of_role("linear") if run.dataset == CIFAR and run.curve]
    runs = [run for run in runs if run.curve[-1].spent is not None]
    if not runs:
        return undecided("The study has no training curve of a private linear model on CIFAR-10", printed)
    points = [(point.spent, point.accuracy) for run in runs for point in run.curve if point.spent is not None]
    points.sort(key=itemgetter(0))
    reached = [spent for spent, accuracy in points if accuracy.number >= goal]
    few = level(evidence.ours, CIFAR, Value(goal)) is None
    last = max((run.curve[-1].accuracy for run in runs), key=lambda value: value.number)
    if not reached:
        here = f"{goal} % is not reached: the last point has {last.mean:.2f} %"
        if few:
            return undecided(f"{here}. {_FEWER}", printed)
        if compare(last, Value(goal)) == 0:
            return undecided(f"{here}, which is within the noise", printed)
        return Finding(FAILS, CELLS, printed, here)
    here = f"{goal} % is first reached at a certified ε = {upper_bound(reached[0], places=2)}"
    if few:
        return undecided(f"{here}. {_FEWER}", printed)
    above = [spent for spent, accuracy in points if compare(accuracy, Value(goal)) == 1]
    if not above:
        return undecided(f"{here}, and nowhere passed by more than the noise", printed)
    passed = upper_bound(above[0], places=2)
    here += f", passed by more than the noise at {passed}; e^({before} - {passed}) = "
    here += f"{math.exp(before - above[0]):.0f}"
    if reached[0] < before <= above[0]:
        return undecided(here, printed)
    return Finding(HOLDS if above[0] < before else FAILS, CELLS, printed, here)


def end_points(evidence: Evidence) -> Finding:
    """Judge the claim: the curves of Figure 1 end at the numbers of Tables 1 and 19."""
    runs = [run for run in evidence.ours.of_role("linear", "cnn") if run.curve and run.curve[-1].spent is not None]
    triples = [
        (f"{run.dataset} {run.role} {number(run.epsilon)}", run.curve[-1].accuracy, target)
        for run in runs
        if (target := level(evidence.ours, run.dataset, evidence.printed.get(run.dataset, run.role, run.epsilon)))
    ]
    part = Part.not_below("End of the curve not below the printed one", triples)
    stops = [
        f"{run.dataset} {run.role} at ε ≤ {e}: {value.mean:.1f}"
        for run in runs
        if run.epsilon >= 3
        for e in (1, 2)
        if (value := curve_value(run, e))
    ]
    finding = on_cells([part], "The study has no training curves in the roles linear and cnn with a printed end point")
    return replace(finding, here=". ".join([finding.here, *([", ".join(stops)] if stops else [])]))


def poisson_and_shuffle(evidence: Evidence) -> Finding:
    """Judge the claim: Poisson sampling and shuffling give similar accuracy."""

    def parts(scores: Scores) -> list[Part]:
        triples = []
        for model in MODELS:
            poisson = f"{model}-poisson" if any(key[1] == f"{model}-poisson" for key in scores.values) else model
            triples += [
                (f"{name} {model}", left, right) for name, left, right in scores.pairs(poisson, f"{model}-shuffle")
            ]
        return [
            Part.not_below(f"Poisson no more than {_ALIKE} points below shuffled batches", triples, _ALIKE),
            Part.not_below(
                f"Shuffled batches no more than {_ALIKE} points below Poisson",
                [(name, shuffle, poisson) for name, poisson, shuffle in triples],
                _ALIKE,
            ),
        ]

    return by_roles(evidence, parts, "linear, linear-shuffle, cnn and cnn-shuffle", about_the_tables=True)


def tighter_analysis(evidence: Evidence) -> Finding:
    """Judge the claim: a tighter analysis of DP-SGD would not close the gap."""
    known = [run for run in evidence.ours.of_role("linear-printed") if run.ledger["epsilon"] is not None]
    spent = ", ".join(
        f"{run.dataset}: {upper_bound(run.ledger['epsilon'], places=2)} instead of {number(run.epsilon)}"
        for run in known
    )
    why = "It is about every analysis that there could be, and rests on another paper's audits"
    return undecided(f"{why}. What PLD certifies of the paper's own noise: {spent}" if spent else why)


def underfitting(evidence: Evidence) -> Finding:
    """Judge the claim: private models underfit, so that they are worse on training records too.

    They stay below the same models without privacy there, and are less ahead of test records.

    They are less ahead there of test records.
    """
    pairs = [
        (f"{private.dataset} {private.role} {number(private.epsilon)}", private, free)
        for role in MODELS
        for free in evidence.ours.of_role(f"nonprivate-{role}")
        for private in evidence.ours.of_role(role)
        if (private.dataset, private.n) == (free.dataset, free.n) and not math.isinf(private.epsilon)
    ]
    return on_cells(
        [
            Part.of("On training records without privacy over private", _values(pairs, on_training)),
            Part.of("Ahead on training records of test records, without privacy over private", _values(pairs, gap)),
        ],
        "The study does not measure accuracy on training records (train_top1) of models with and without privacy",
    )


def _values(pairs: list[tuple[str, Run, Run]], of: Callable[[Run], Value | None]):
    return [(name, of(free), of(private)) for name, private, free in pairs]
