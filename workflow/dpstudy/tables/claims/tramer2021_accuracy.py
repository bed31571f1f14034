"""Claims of tramer2021 about accuracies at a budget, and without one (sections 1 to 3, appendices C.4, C.5, D.3, D.4),
and about more data and other features (section 5, appendices A, C.7): judges, and what comparisons in
workflow/published/claims/tramer2021.yaml compare."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product
from operator import itemgetter

from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.claims.finding import CELLS, PRINTED, Finding, Part, decided, noted, on_cells, undecided
from dpstudy.tables.claims.grid import Triples, Value, compare, number
from dpstudy.tables.claims.names import MODELS
from dpstudy.tables.claims.scores import Evidence, Run, Scores, curve_value, gap, grouped, matched, on_training
from dpstudy.tables.claims.tramer2021_printed import CIFAR, RECORDS, level

_FEWER = "Cells on fewer records than the paper's are not compared with its numbers"
_PRIOR_CIFAR = (66.2, 7.53)  # the best CNN before, and its epsilon
_STATED_CIFAR = 2.6  # where the paper matches it


def along_training(scores: Scores) -> Triples:
    """(point of a CNN's curve up to epsilon 3, linear model when it had spent as much, CNN)."""
    for run, linear in matched(scores.of_role("cnn"), scores.of_role("linear"), "dataset", "n", "epsilon"):
        for point in run.curve:
            if point.spent is not None and point.spent <= 3:
                yield f"{run.dataset} {point.spent:.2f}", curve_value(linear, point.spent), point.accuracy


def budget_on_cifar(evidence: Evidence) -> Finding:
    """Judge the claim: 66.2 % at epsilon 7.53 is matched at 2.6."""
    goal, before = _PRIOR_CIFAR
    printed = f"e^({before} - {_STATED_CIFAR}) = {math.exp(before - _STATED_CIFAR):.0f}; the text has 134"
    runs = [run for run in _private_curves(evidence, "linear") if run.dataset == CIFAR]
    if not runs:
        return undecided("The study has no training curve of a private linear model on CIFAR-10", printed)
    points = [(point.spent, point.accuracy) for run in runs for point in run.curve if point.spent is not None]
    points.sort(key=itemgetter(0))
    reached = [spent for spent, accuracy in points if accuracy.number >= goal]
    last = max((run.curve[-1].accuracy for run in runs), key=lambda value: value.number)
    if reached:
        here = f"{goal} % is first reached at a certified ε = {upper_bound(reached[0], places=2)}"
    else:
        here = f"{goal} % is not reached: the last point has {last.mean:.2f} %"
    if level(evidence.ours, CIFAR, Value(goal)) is None:
        return undecided(f"{here}. {_FEWER}", printed)
    if not reached:
        if compare(last, Value(goal)) == 0:
            return undecided(f"{here}, which is within the noise", printed)
        return decided(False, CELLS, printed, here)
    above = next((spent for spent, accuracy in points if compare(accuracy, Value(goal)) == 1), None)
    if above is None:
        return undecided(f"{here}, and nowhere passed by more than the noise", printed)
    passed = upper_bound(above, places=2)
    here += f", passed by more than the noise at {passed}; e^({before} - {passed}) = {math.exp(before - above):.0f}"
    if reached[0] < before <= above:
        return undecided(here, printed)
    return decided(above < before, CELLS, printed, here)


def _private_curves(evidence: Evidence, *roles: str) -> list[Run]:
    """The cells in some roles with a training curve along which they spend."""
    return [run for run in evidence.ours.of_role(*roles) if run.curve and run.curve[-1].spent is not None]


def end_points(evidence: Evidence) -> Finding:
    """Judge the claim: the curves of Figure 1 end at the numbers of Tables 1 and 19."""
    triples, stops = [], []
    for run in _private_curves(evidence, "linear", "cnn"):
        printed = evidence.printed.get(run.dataset, run.role, run.epsilon)
        target = level(evidence.ours, run.dataset, printed)
        triples.append((f"{run.dataset} {run.role} {number(run.epsilon)}", run.curve[-1].accuracy, target))
        for e in (1, 2) if run.epsilon >= 3 else ():
            if value := curve_value(run, e):
                stops.append(f"{run.dataset} {run.role} at ε ≤ {e}: {value.mean:.1f}")
    part = Part.of("End of the curve not below the printed one", triples, margin=0.0)
    missing = "The study has no training curves in the roles linear and cnn with a printed end point"
    return noted(on_cells([part], missing), here=", ".join(stops))


def by_sampling(scores: Scores) -> Triples:
    """(place and model, its accuracy with Poisson sampling, with shuffled batches)."""
    roles = {role for _, role, _ in scores.values}
    for model in MODELS:
        sampled = f"{model}-poisson" if f"{model}-poisson" in roles else model
        for name, poisson, shuffled in scores.pairs(sampled, f"{model}-shuffle"):
            yield f"{name} {model}", poisson, shuffled


def by_iteration(scores: Scores) -> Triples:
    """(place, linear model by DP-SGD, by iteration) at the epsilons that Figure 10 shows."""
    for e in scores.epsilons(CIFAR, "iteration"):
        if 1 <= e <= 3:
            yield f"{CIFAR} {number(e)}", scores.get(CIFAR, "linear", e), scores.get(CIFAR, "iteration", e)


def tighter_analysis(evidence: Evidence) -> Finding:
    """Judge the claim: a tighter analysis of DP-SGD would not close the gap."""
    spent = ", ".join(
        f"{run.dataset}: {upper_bound(run.ledger['epsilon'], places=2)} instead of {number(run.epsilon)}"
        for run in evidence.ours.of_role("linear-printed")
        if run.ledger["epsilon"] is not None
    )
    why = "It is about every analysis that there could be, and rests on another paper's audits"
    return undecided(f"{why}. What PLD certifies of the paper's own noise: {spent}" if spent else why)


def without_and_with_privacy(scores: Scores, ahead: bool) -> Triples:
    """(place and model, without privacy, with it) on training records.

    Args:
        ahead: compare how much higher accuracy is there than on test records.
    """
    value = gap if ahead else on_training
    for role in MODELS:
        for free, private in matched(scores.of_role(f"nonprivate-{role}"), scores.of_role(role), "dataset", "n"):
            if private.private:
                yield f"{private.dataset} {private.role} {number(private.epsilon)}", value(free), value(private)


def by_records(
    scores: Scores, left: Sequence[str], right: Sequence[str], least: int = 0, most: float = math.inf
) -> Triples:
    """(name, left, right) of private CIFAR-10 models in these roles, with so many records."""
    for one, other in product(left, right):
        for a, b in matched(scores.of_any_size(one), scores.of_any_size(other), "dataset", "n", "epsilon"):
            if a.dataset == CIFAR and a.private and least <= a.n <= most:
                yield f"{one} and {other}, {a.n:,} records, ε = {number(a.epsilon)}", a.accuracy, b.accuracy


def longer_with_more_data(evidence: Evidence) -> Finding:
    """Judge the claim: with more data, more steps and higher rates are best (Table 16)."""
    rising, texts = [], []
    for rows in grouped((r for r in evidence.hyperparameters if r["table"] == "16"), itemgetter("model", "parameter")):
        rows.sort(key=lambda row: int(row["dataset"].partition("N=")[2].removesuffix("K)")))
        values = [Fraction(row["value"]) for row in rows]
        rising.append(all(a <= b for a, b in pairwise(values)) and values[0] < values[-1])
        name = "epochs" if rows[0]["parameter"].startswith("epochs") else "base rate"
        texts.append(f"{rows[0]['model']}: {name} {', '.join(map(str, values))}")
    text = ", ".join(texts)
    text = f"{sum(rising)} of {len(rising)} series of Table 16 rise with N and never fall. {text}"
    return decided(bool(rising) and all(rising), PRINTED, text)


def pseudo_labelled(scores: Scores) -> Triples:
    """(model, with more records than CIFAR-10 has, with these alone), without privacy."""
    for model in MODELS:
        for run, base in product(scores.of_any_size(f"nonprivate-{model}"), repeat=2):
            if run.dataset == base.dataset == CIFAR and run.n > RECORDS[CIFAR] == base.n:
                yield f"{model}, {run.n:,} records", run.accuracy, base.accuracy


def costs_of_more_features(scores: Scores) -> Triples:
    """(cell, what privacy costs with more random features, with fewer), of one data set and epsilon."""
    runs = scores.of_role("random-patches")  # of one data set and epsilon: from few features to many
    both = [
        (one, free) for one, free in matched(runs, runs, "dataset", "entry") if not free.private and one is not free
    ]
    for (few, few_free), (many, many_free) in combinations(both, 2):
        if few.at == many.at:
            yield many.entry, many_free.accuracy - many.accuracy, few_free.accuracy - few.accuracy


def scatternet_and_random(scores: Scores) -> Triples:
    """(cell, linear model on ScatterNet features, on random ones)."""
    for run in scores.of_role("random-patches"):
        if run.private:
            linear = scores.get(run.dataset, "linear", run.epsilon)
            yield f"{run.entry}, ε = {number(run.epsilon)}", linear, run.accuracy
