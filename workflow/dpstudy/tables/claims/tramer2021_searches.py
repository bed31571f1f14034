"""Claims of tramer2021 about searches over hyper-parameters (section 3.2, Table 3; appendices C.5, D.2, Figure 8).

A search makes one run a setting, so that its numbers have no standard error: they are compared as found.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dpstudy.tables.claims.finding import CELLS, FAILS, HOLDS, Finding, Part, noted, on_both, undecided
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.names import MODELS
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Scores
from dpstudy.tables.claims.tramer2021_accuracy import CIFAR, FASHION, MNIST
from dpstudy.tables.trials import BY_LABEL

PARAMETERS = ("batch_size", "learning_rate", "epochs")
EXCEPTED = {"batch_size": slice(-1), "learning_rate": slice(1, None)}  # of CNNs: overly large batches, low rates
_STABLE = 1.0  # points between the best with a parameter fixed and the best of all that still read as "very stable"
_NEAR = 3.0  # points below the best that still read as "near-optimal"
_TREND = 0.5  # points from the last value but one to the last that read as a significant upward trend
_MISSING = "The study has no searches over hyper-parameters for the models and data sets that the claim names"


def _against(
    scores: Scores, datasets: Sequence[str], left: tuple[str, str], right: tuple[str, str]
) -> list[tuple[str, Value, Value]]:
    """(data set, a statistic of one model, a statistic of another); each is (model, statistic)."""
    pairs = []
    for dataset in datasets:
        one, other = (scores.searches.get((dataset, model)) for model, _ in (left, right))
        if one is not None and other is not None:
            pairs.append((dataset, Value(one.statistics[left[1]]), Value(other.statistics[right[1]])))
    return pairs


def _judged(evidence: Evidence, parts_of: Callable[[Scores], list[Part]]) -> Finding:
    """By searches without a failed trial: a setting that diverged has no accuracy, and would be the worst."""
    ours = evidence.ours
    failed = {key: search.failed for key, search in ours.searches.items() if search.failed}
    whole = {key: search for key, search in ours.searches.items() if key not in failed}
    finding = on_both(replace(evidence, ours=replace(ours, searches=whole)), parts_of, True, _MISSING)
    lost = ", ".join(f"{model} on {dataset}: {count} trials failed" for (dataset, model), count in failed.items())
    return noted(finding, here=f"Left out: {lost}" if lost else "")


def worst_over_best(evidence: Evidence) -> Finding:
    """Judge the claim: on CIFAR-10 the worst linear setting beats the best CNN's."""

    def parts(scores: Scores) -> list[Part]:
        triples = _against(scores, [CIFAR], ("linear", "min"), ("cnn", "max"))
        return [Part.of("Worst linear over best CNN, as found", triples)]

    return _judged(evidence, parts)


def median_over_best(evidence: Evidence) -> Finding:
    """Judge the claim: on MNIST and Fashion-MNIST the median linear setting beats the best CNN's."""

    def parts(scores: Scores) -> list[Part]:
        triples = _against(scores, [MNIST, FASHION], ("linear", "median"), ("cnn", "max"))
        return [Part.of("Median linear over best CNN, as found", triples)]

    return _judged(evidence, parts)


def random_settings(evidence: Evidence) -> Finding:
    """Judge the claim: ScatterNet models are nearly as good with random hyper-parameters as with the best."""

    def parts(scores: Scores) -> list[Part]:
        everywhere = list(dict.fromkeys(dataset for dataset, _ in scores.searches))
        return [
            Part.not_below(
                f"Median {model} at most {_NEAR:g} points below the best, as found",
                _against(scores, everywhere, (model, "median"), (model, "max")),
                _NEAR,
            )
            for model in ("linear", "scatter-cnn")
        ]

    return _judged(evidence, parts)


def spread(evidence: Evidence) -> Finding:
    """Judge the claim: ScatterNet CNNs vary less than CNNs, and linear models least."""

    def parts(scores: Scores) -> list[Part]:
        everywhere = list(dict.fromkeys(dataset for dataset, _ in scores.searches))
        return [
            Part.of(f"MAD of {right} over that of {left}", _against(scores, everywhere, (right, "mad"), (left, "mad")))
            for left, right in zip(MODELS, MODELS[1:], strict=False)
        ]

    return _judged(evidence, parts)


def best_by_value(trials: Sequence[Mapping], parameter: str) -> dict[float | str, float]:
    """Value of a hyper-parameter -> the best trial with it, in percent, in ascending order (labels in no order)."""
    best: dict[float | str, float] = {}
    for trial in trials:
        if trial.get(parameter) is not None:
            value = trial[parameter] if parameter == BY_LABEL else float(trial[parameter])
            best[value] = max(best.get(value, 0.0), trial["value"])
    return dict(sorted(best.items()))


def maximum_is_stable(evidence: Evidence) -> Finding:
    """Judge the claim: the best accuracy hardly depends on one parameter, except for some CNNs.

    These are CNNs with large batches or low rates. What tells the searches of a model apart, its normalisation, is a
    parameter too, as in the figure.

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
    return Finding(HOLDS if losses[worst] <= _STABLE else FAILS, CELLS, "", text)


def boundary(evidence: Evidence) -> Finding:
    """Judge the claim: best settings at the end of a searched range do not show a missed optimum."""
    printed = _printed_boundaries(evidence)
    gains: dict[str, float] = {}
    for (dataset, model), search in evidence.ours.searches.items():
        for parameter in PARAMETERS:
            best = best_by_value(search.trials, parameter)
            values = list(best)
            if len(values) > 1 and (top := max(values, key=best.__getitem__)) in (values[0], values[-1]):
                inner = values[1] if top == values[0] else values[-2]
                gains[f"{dataset} {model} {parameter} = {top:g}"] = best[top] - best[inner]
    if not any(search.trials for search in evidence.ours.searches.values()):
        return undecided(_MISSING, printed)
    if not gains:
        return undecided("No best setting of these searches lies at the end of its range", printed)
    worst = max(gains, key=gains.__getitem__)
    text = (
        f"{len(gains)} best settings at the end of a range; the last step gains at most {gains[worst]:.2f} points "
        f"({worst}); more than {_TREND:g} counts as an upward trend. As found"
    )
    return Finding(HOLDS if gains[worst] <= _TREND else FAILS, CELLS, printed, text)


def _printed_boundaries(evidence: Evidence) -> str:
    """Which best settings of Table 13 lie at the largest number of epochs that Table 12 searched."""
    ranges = {
        r["dataset"]: r["value"] for r in evidence.hyperparameters if (r["table"], r["parameter"]) == ("12", "epochs")
    }
    best = [r for r in evidence.hyperparameters if (r["table"], r["parameter"]) == ("13", "epochs")]
    ends = [r for r in best if r["value"] == ranges[r["dataset"]].strip("{}").split(", ")[-1]]
    return f"{len(ends)} of {len(best)} best settings of Table 13 have the most epochs that Table 12 searches"
