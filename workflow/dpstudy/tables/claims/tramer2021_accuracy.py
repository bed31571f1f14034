"""Claims of tramer2021 about accuracies at a budget, and without one (sections 1 to 3, appendices C.4, C.5, D.3, D.4),
more data and other features (section 5, appendices A, C.7), training (convergence, learning rates, batches: 4, D.1) and
searches over hyper-parameters (section 3.2, Table 3; appendices C.5, D.2, Figure 8): judges, and what comparisons in
workflow/published/claims/tramer2021.yaml compare.

A search makes one run a setting, so that its numbers have no standard error: they are compared as found.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product
from operator import itemgetter

from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.claims.finding import CELLS, COMPUTED, PRINTED, Finding, Part, decided, noted, on_cells, undecided
from dpstudy.tables.claims.grid import Triples, Value, compare, number
from dpstudy.tables.claims.names import MODELS
from dpstudy.tables.claims.scores import Evidence, Run, Scores, curve_value, gap, matched, on_training
from dpstudy.tables.claims.tramer2021_printed import CIFAR, RECORDS, level
from dpstudy.tables.claims.tramer2021_settings import certified
from dpstudy.tables.grouping import grouped
from dpstudy.tables.trials import BY_LABEL

_FEWER = "Cells on fewer records than the paper's are not compared with its numbers"
_PRIOR_CIFAR = (66.2, 7.53)  # the best CNN before, and its epsilon
_STATED_CIFAR = 2.6  # where the paper matches it
_LAST_DIGIT = 0.05  # half of the last one that is printed
_EARLY = 0.25  # of training: where convergence is compared
_TENFOLD = (5.0, 20.0)  # ratios of rates that read as "about an order of magnitude"
_EXAMPLE = (4, 512, Fraction(1, 4), Fraction(3, 2))  # k, B, eta and sigma at which the algebra is done
PARAMETERS = ("batch_size", "learning_rate", "epochs")
EXCEPTED = {"batch_size": slice(-1), "learning_rate": slice(1, None)}  # of CNNs: overly large batches, low rates
_STABLE = 1.0  # points between the best with a parameter fixed and the best of all that still read as "very stable"
_UNSTABLE = 2.0  # points that do not: each setting is one run, scored on some thousands of records
_TREND = 0.5  # points from the last value but one to the last that read as a significant upward trend
_MISSING = "The study has no searches over hyper-parameters for the models and data sets that the claim names"


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
    along = [(point.spent, point.accuracy) for run in runs for point in run.curve if point.spent is not None]
    points = sorted(along, key=itemgetter(0))
    reached = [spent for spent, accuracy in points if accuracy.number >= goal]
    last = max((run.curve[-1].accuracy for run in runs), key=lambda value: value.number)
    here = f"{goal} % is not reached: the last point has {last.mean:.2f} %"
    if reached:
        here = f"{goal} % is first reached at a certified ε = {upper_bound(reached[0], places=2)}"
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
        triples.append((f"{run.dataset} {run.role} {number(run.epsilon)}", run.curve[-1].accuracy, _at_least(target)))
        for e in (1, 2) if run.epsilon >= 3 else ():
            if value := curve_value(run, e):
                stops.append(f"{run.dataset} {run.role} at ε ≤ {e}: {value.mean:.1f}")
    part = Part.of("End of the curve not below the printed one", triples, margin=0.0)
    missing = "The study has no training curves in the roles linear and cnn with a printed end point"
    return noted(on_cells([part], missing), here=", ".join(stops))


def _at_least(printed: Value | None) -> Value | None:
    """The least number that is printed so, with one digit after the point."""
    return printed and printed - Value(_LAST_DIGIT)


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


def spent_by_pld(evidence: Evidence) -> str:
    """What another analysis certifies of the noise that the paper takes."""
    spent = ", ".join(f"{data}: {proved} instead of {stated}" for data, stated, proved in certified(evidence))
    return f"What PLD certifies of the paper's own noise: {spent}" if spent else ""


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
    free = [run for run in runs if not run.private]
    both = [(one, other) for one, other in matched(runs, free, "dataset", "entry") if one is not other]
    for (few, few_free), (many, many_free) in combinations(both, 2):
        if few.at == many.at:
            yield many.entry, many_free.accuracy - many.accuracy, few_free.accuracy - few.accuracy


def fewer_random_features(scores: Scores) -> Triples:
    """(cell, its accuracy with fewer random features, with more), of one data set and epsilon."""
    runs = [run for run in scores.of_role("random-patches") if run.private]
    for few, many in combinations(runs, 2):
        if few.at == many.at:
            yield f"{many.entry}, ε = {number(many.epsilon)}", few.accuracy, many.accuracy


def scatternet_and_random(scores: Scores) -> Triples:
    """(cell, linear model on ScatterNet features, on random ones)."""
    for run in scores.of_role("random-patches"):
        if run.private:
            linear = scores.get(run.dataset, "linear", run.epsilon)
            yield f"{run.entry}, ε = {number(run.epsilon)}", linear, run.accuracy


def rates_differ_tenfold(evidence: Evidence) -> tuple[bool, str]:
    """Whether Table 14's best rates with noise are about ten times lower than without, and by how much."""
    rows = [row for row in evidence.hyperparameters if row["table"] == "14" and "learning_rate" in row["parameter"]]
    rates = {(row["dataset"], row["parameter"]): float(Fraction(row["value"])) for row in rows}
    ratios = [rates[d, "learning_rate_high"] / rate for (d, name), rate in rates.items() if name.endswith("low")]
    text = f"Table 14's rates differ by a factor of {', '.join(f'{ratio:g}' for ratio in ratios)}"
    return bool(ratios) and all(_TENFOLD[0] <= ratio <= _TENFOLD[1] for ratio in ratios), text


def _same(scores: Scores, left: str, right: str, datasets: Sequence[str]) -> Iterator[tuple[str, Run, Run]]:
    """(data set and model, left, right) of every model's two convergence runs, whatever their epsilon."""
    for model in MODELS:
        for a, b in matched(scores.of_role(model + left), scores.of_role(model + right), "dataset", "n"):
            if not datasets or a.dataset in datasets:
                yield f"{a.dataset} {model}", a, b


def last_points(scores: Scores, left: str, right: str, datasets: Sequence[str] = ()) -> Triples:
    """(data set and model, left, right) of every model's last accuracies in two convergence runs."""
    return [(name, a.accuracy, b.accuracy) for name, a, b in _same(scores, left, right, datasets)]


def points_along(scores: Scores, left: str, right: str, datasets: Sequence[str]) -> Triples:
    """(name, left, right) at each point of every model's curves in two convergence runs, after the first quarter."""
    for name, a, b in _same(scores, left, right, datasets):
        for one, other in zip(a.curve, b.curve, strict=False):
            if one.epochs == other.epochs and one.epochs >= _EARLY * a.curve[-1].epochs:
                yield f"{name} after {one.epochs:.0f}", one.accuracy, other.accuracy


def losses_by_rate(scores: Scores, datasets: Sequence[str]) -> Triples:
    """(data set and model, what noise costs at the high rate, at the low one)."""
    low, high = (
        {name: a.accuracy - b.accuracy for name, a, b in _same(scores, f"-{rate}-clip", f"-{rate}", datasets)}
        for rate in ("low", "high")
    )
    return [(name, loss, low.get(name)) for name, loss in high.items()]


def early_points(scores: Scores, datasets: Sequence[str]) -> Triples:
    """(data set and model, ScatterNet model after a quarter of training, CNN) at the low rate, without noise."""
    features, cnns = scores.of_role("linear-low-clip", "scatter-cnn-low-clip"), scores.of_role("cnn-low-clip")
    for run, cnn in matched(features, cnns, "dataset"):
        if run.dataset in datasets:
            yield f"{run.dataset} {run.role.removesuffix('-low-clip')}", _early(run), _early(cnn)


def _early(run: Run) -> Value | None:
    """The accuracy of a run after the first quarter of its epochs."""
    if not run.curve:
        return None
    until = _EARLY * run.curve[-1].epochs * (1 + 1e-9)
    return next((point.accuracy for point in reversed(run.curve) if point.epochs <= until), None)


def by_batch(scores: Scores) -> Triples:
    """(point of a CNN's curve, its accuracy, that with the smallest batch), after the first quarter."""
    for smallest, *others in grouped(scores.of_role("cnn-batches"), lambda run: run.at):
        for run in others:
            for a, b in zip(run.curve, smallest.curve, strict=False):
                if a.epochs >= _EARLY * run.curve[-1].epochs:
                    yield f"{run.dataset} {run.entry} after {a.epochs:.0f}", a.accuracy, b.accuracy


def one_large_step(evidence: Evidence) -> Finding:
    """Judge the claim: k steps at (B, eta, sigma) add the noise of one at (kB, k eta, sqrt(k) sigma)."""
    k, batch, rate, sigma = _EXAMPLE
    several = k * rate**2 * sigma**2 / batch**2
    one = (k * rate) ** 2 * (k * sigma**2) / (k * batch) ** 2
    text = f"k = {k}, B = {batch}, η = {rate}, σ = {sigma}: variances {float(several):.4g} and {float(one):.4g}"
    return decided(several == one, COMPUTED, text)


def statistics(scores: Scores, left: tuple[str, str], right: tuple[str, str], datasets: Sequence[str] = ()) -> Triples:
    """(data set, a statistic of one model's search, a statistic of another's); each is (model, statistic).

    Of searches without a failed trial: a setting that diverged has no accuracy, and would be the worst.
    """
    whole = {key: search.statistics for key, search in scores.searches.items() if not search.failed}
    for dataset in datasets or dict.fromkeys(dataset for dataset, _ in whole):
        if {(dataset, left[0]), (dataset, right[0])} <= whole.keys():
            yield dataset, Value(whole[dataset, left[0]][left[1]]), Value(whole[dataset, right[0]][right[1]])


def failed_searches(evidence: Evidence) -> str:
    """Which searches are left out because trials failed."""
    failed = {key: search.failed for key, search in evidence.ours.searches.items() if search.failed}
    lost = ", ".join(f"{model} on {dataset}: {count} trials failed" for (dataset, model), count in failed.items())
    return f"Left out: {lost}" if lost else ""


def best_by_value(trials: Sequence[Mapping], parameter: str) -> dict[float | str, float]:
    """Value of a hyper-parameter -> the best trial with it, in percent, in ascending order (labels in no order)."""
    best: dict[float | str, float] = {}
    for trial in trials:
        if trial.get(parameter) is not None:
            value = trial[parameter] if parameter == BY_LABEL else float(trial[parameter])
            best[value] = max(best.get(value, 0.0), trial["value"])
    return dict(sorted(best.items()))


def maximum_is_stable(evidence: Evidence) -> Finding:
    """Judge the claim: the best accuracy hardly depends on one parameter, except for CNNs with large batches or low
    rates.

    The figure has linear models and end-to-end CNNs. What tells the searches of a model apart, its normalisation, is a
    parameter too, as there.
    """
    losses: dict[str, float] = {}
    for (dataset, model), search in evidence.ours.searches.items():
        if model not in ("linear", "cnn"):
            continue
        for parameter in (*PARAMETERS, BY_LABEL):
            best = list(best_by_value(search.trials, parameter).values())
            if model == "cnn" and parameter in EXCEPTED:
                best = best[EXCEPTED[parameter]]
            if len(best) > 1:
                name = "normalisation" if parameter == BY_LABEL else parameter
                losses[f"{dataset} {model} {name}"] = max(best) - min(best)
    if not losses:
        return undecided(_MISSING)
    worst = max(losses, key=losses.__getitem__)
    text = f"Between the best settings with one parameter fixed lie at most {losses[worst]:.2f} points ({worst}); "
    text += f"up to {_STABLE:g} counts as stable, above {_UNSTABLE:g} as not. "
    text += "Of the CNN's, the largest batch and the lowest rate are left out. As found"
    if _STABLE < losses[worst] <= _UNSTABLE:
        return undecided(text)
    return decided(losses[worst] <= _STABLE, CELLS, "", text)


def boundary(evidence: Evidence) -> Finding:
    """Judge the claim: best settings at the end of a searched range do not show a missed optimum."""
    printed = _printed_boundaries(evidence)
    gains: dict[str, float] = {}
    for (dataset, model), search in evidence.ours.searches.items():
        for parameter in PARAMETERS:
            best = list(best_by_value(search.trials, parameter).items())
            if len(best) > 1 and (top := max(best, key=itemgetter(1))) in (best[0], best[-1]):
                inner = best[1] if top == best[0] else best[-2]
                gains[f"{dataset} {model} {parameter} = {top[0]:g}"] = top[1] - inner[1]
    if not any(search.trials for search in evidence.ours.searches.values()):
        return undecided(_MISSING, printed)
    if not gains:
        return undecided("No best setting of these searches lies at the end of its range", printed)
    worst = max(gains, key=gains.__getitem__)
    text = f"{len(gains)} best settings at the end of a range; the last step gains at most {gains[worst]:.2f} points "
    text += f"({worst}); more than {_TREND:g} counts as an upward trend. As found"
    return decided(gains[worst] <= _TREND, CELLS, printed, text)


def _printed_boundaries(evidence: Evidence) -> str:
    """Which best settings of Table 13 lie at the largest number of epochs that Table 12 searched."""
    epochs = [row for row in evidence.hyperparameters if row["parameter"] == "epochs"]
    most = {row["dataset"]: row["value"].strip("{}").split(", ")[-1] for row in epochs if row["table"] == "12"}
    best = [row for row in epochs if row["table"] == "13"]
    ends = sum(row["value"] == most[row["dataset"]] for row in best)
    return f"{ends} of {len(best)} best settings of Table 13 have the most epochs that Table 12 searches"
