"""Claims of tramer2021 about searches over hyper-parameters (section 3.2, Table 3; appendices C.5, D.2, Figure 8).

A search makes one run a setting, so that its numbers have no standard error: they are compared as found.
"""

from collections.abc import Mapping, Sequence

from dpstudy.tables.claims.finding import CELLS, Finding, Triples, decided, undecided
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Scores
from dpstudy.tables.trials import BY_LABEL

PARAMETERS = ("batch_size", "learning_rate", "epochs")
EXCEPTED = {"batch_size": slice(-1), "learning_rate": slice(1, None)}  # of CNNs: overly large batches, low rates
_STABLE = 1.0  # points between the best with a parameter fixed and the best of all that still read as "very stable"
_TREND = 0.5  # points from the last value but one to the last that read as a significant upward trend
_MISSING = "The study has no searches over hyper-parameters for the models and data sets that the claim names"


def statistics(scores: Scores, left: tuple[str, str], right: tuple[str, str], datasets: Sequence[str] = ()) -> Triples:
    """(data set, a statistic of one model's search, a statistic of another's); each is (model, statistic).

    Of searches without a failed trial: a setting that diverged has no accuracy, and would be the worst.
    """
    whole = {key: search.statistics for key, search in scores.searches.items() if not search.failed}
    return [
        (dataset, Value(whole[dataset, left[0]][left[1]]), Value(whole[dataset, right[0]][right[1]]))
        for dataset in datasets or dict.fromkeys(dataset for dataset, _ in whole)
        if {(dataset, left[0]), (dataset, right[0])} <= whole.keys()
    ]


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
    return decided(gains[worst] <= _TREND, CELLS, printed, text)


def _printed_boundaries(evidence: Evidence) -> str:
    """Which best settings of Table 13 lie at the largest number of epochs that Table 12 searched."""
    ranges, best = (
        [row for row in evidence.hyperparameters if (row["table"], row["parameter"]) == (table, "epochs")]
        for table in ("12", "13")
    )
    most = {row["dataset"]: row["value"].strip("{}").split(", ")[-1] for row in ranges}
    ends = sum(row["value"] == most[row["dataset"]] for row in best)
    return f"{ends} of {len(best)} best settings of Table 13 have the most epochs that Table 12 searches"
