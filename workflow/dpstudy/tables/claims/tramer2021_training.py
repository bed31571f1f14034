"""Claims of tramer2021 about training: convergence with and without noise, learning rates, batches (4, D.1), and
searches over hyper-parameters (section 3.2, Table 3; appendices C.5, D.2, Figure 8): judges, and what comparisons in
workflow/published/claims/tramer2021.yaml compare.

A search makes one run a setting, so that its numbers have no standard error: they are compared as found.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from operator import itemgetter

from dpstudy.tables.claims.finding import CELLS, COMPUTED, Finding, decided, undecided
from dpstudy.tables.claims.grid import Triples, Value
from dpstudy.tables.claims.names import MODELS
from dpstudy.tables.claims.scores import Evidence, Run, Scores, grouped, matched
from dpstudy.tables.trials import BY_LABEL

_EARLY = 0.25  # of training: where convergence is compared
_TENFOLD = (5.0, 20.0)  # ratios of rates that read as "about an order of magnitude"
_EXAMPLE = (4, 512, Fraction(1, 4), Fraction(3, 2))  # k, B, eta and sigma at which the algebra is done
PARAMETERS = ("batch_size", "learning_rate", "epochs")
EXCEPTED = {"batch_size": slice(-1), "learning_rate": slice(1, None)}  # of CNNs: overly large batches, low rates
_STABLE = 1.0  # points between the best with a parameter fixed and the best of all that still read as "very stable"
_TREND = 0.5  # points from the last value but one to the last that read as a significant upward trend
_MISSING = "The study has no searches over hyper-parameters for the models and data sets that the claim names"


def rates_differ_tenfold(evidence: Evidence) -> tuple[bool, str]:
    """Whether Table 14's best rates with noise are about ten times lower than without, and by how much."""
    rates = {
        (row["dataset"], row["parameter"]): float(Fraction(row["value"]))
        for row in evidence.hyperparameters
        if row["table"] == "14" and row["parameter"].startswith("learning_rate")
    }
    ratios = [rates[d, "learning_rate_high"] / rate for (d, name), rate in rates.items() if name.endswith("low")]
    text = f"Table 14's rates differ by a factor of {', '.join(f'{ratio:g}' for ratio in ratios)}"
    return bool(ratios) and all(_TENFOLD[0] <= ratio <= _TENFOLD[1] for ratio in ratios), text


def _same(scores: Scores, left: str, right: str, datasets: Sequence[str] = ()) -> list[tuple[str, Run, Run]]:
    """(data set and model, left, right) of every model's two convergence runs, whatever their epsilon."""
    return [
        (f"{a.dataset} {model}", a, b)
        for model in MODELS
        for a, b in matched(scores.of_role(model + left), scores.of_role(model + right), "dataset", "n")
        if not datasets or a.dataset in datasets
    ]


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

    What tells the searches of a model apart, its normalisation, is a parameter too, as in the figure.
    """
    losses: dict[str, float] = {}
    for (dataset, model), search in evidence.ours.searches.items():
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
    text = (
        f"Between the best settings with one parameter fixed lie at most {losses[worst]:.2f} points ({worst}); up to "
        f"{_STABLE:g} counts as stable. Of the CNN's, the largest batch and the lowest rate are left out. As found"
    )
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
    text = (
        f"{len(gains)} best settings at the end of a range; the last step gains at most {gains[worst]:.2f} points "
        f"({worst}); more than {_TREND:g} counts as an upward trend. As found"
    )
    return decided(gains[worst] <= _TREND, CELLS, printed, text)


def _printed_boundaries(evidence: Evidence) -> str:
    """Which best settings of Table 13 lie at the largest number of epochs that Table 12 searched."""
    epochs = [row for row in evidence.hyperparameters if row["parameter"] == "epochs"]
    most = {row["dataset"]: row["value"].strip("{}").split(", ")[-1] for row in epochs if row["table"] == "12"}
    best = [row for row in epochs if row["table"] == "13"]
    ends = sum(row["value"] == most[row["dataset"]] for row in best)
    return f"{ends} of {len(best)} best settings of Table 13 have the most epochs that Table 12 searches"
