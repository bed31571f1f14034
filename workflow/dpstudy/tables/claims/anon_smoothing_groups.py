"""Claims of anon_smoothing on classes and subgroups (sections 1 and 4.4), by per-label scores in metrics.json."""

import math
from collections.abc import Iterator, Mapping

from dpstudy.evaluation.groups import gap
from dpstudy.evaluation.judge import LABEL
from dpstudy.tables.claims.anon_smoothing_printed import (
    CHEXPERT,
    CIFAR10,
    DISTANCES,
    DP_SGD,
    FREE,
    SMOOTHING,
    places,
)
from dpstudy.tables.claims.anon_smoothing_privacy import audited
from dpstudy.tables.claims.finding import Finding, Part, noted, number, on_cells, undecided
from dpstudy.tables.claims.grid import Value, average
from dpstudy.tables.claims.role_evidence import Evidence, value_of
from dpstudy.tables.claims.scores import Run, Scores

_AT = 8.0
_SIMILAR = 2.0  # points of gaps that still read as "similar"


def label_scores(run: Run, metric: str) -> dict[str, list[float]]:
    """Label -> the metric on it for each seed, where every seed has it."""
    prefix, seeds = f"{LABEL}=", [seed.get("groups", {}) for seed in run.metrics.get("seeds", ())]
    names = [name for name in (seeds[0] if seeds else {}) if name.startswith(prefix)]
    return {
        name.removeprefix(prefix): [groups[name][metric] for groups in seeds]
        for name in names
        if all(metric in groups.get(name, {}) for groups in seeds)
    }


def label_gap(run: Run, metric: str) -> Value | None:
    """The difference between the best and the worst label in each seed; None for fewer than two labels."""
    by_label = label_scores(run, metric)
    if len(by_label) < 2:
        return None
    seeds = range(len(next(iter(by_label.values()))))
    gaps = [ends[0] for seed in seeds if (ends := gap({name: scores[seed] for name, scores in by_label.items()}))]
    return value_of(gaps, metric)


def _best(scores: Scores, place: str, role: str, epsilon: float, metric: str) -> Run | None:
    """The cell that stands for a role, of those with labels' scores."""
    runs = [run for run in scores.of_role(role) if (run.dataset, run.epsilon) == (place, epsilon)]
    runs = [run for run in runs if label_scores(run, metric)]
    return max(runs, key=lambda run: run.accuracy.number, default=None)


def _compared(scores: Scores, data: str, metric: str) -> Iterator[tuple[str, Mapping[str, Run | None]]]:
    """(place and epsilon, role -> cell) for each backbone, at epsilon 8 or the largest finite one there is."""
    for place in places(scores, data, SMOOTHING):
        finite = [epsilon for epsilon in scores.epsilons(place, SMOOTHING) if not math.isinf(epsilon)]
        if finite:
            epsilon = _AT if _AT in finite else finite[-1]
            at = {SMOOTHING: epsilon, DP_SGD: epsilon, FREE: math.inf}
            cells = {role: _best(scores, place, role, e, metric) for role, e in at.items()}
            yield f"{place} {number(epsilon)}", cells


def _gaps(evidence: Evidence, role: str) -> list[tuple[str, Value | None, Value | None]]:
    """(place and epsilon, gap of a role, gap of smoothing)."""

    def gap_of(run: Run | None) -> Value | None:
        return label_gap(run, evidence.metric) if run else None

    return [
        (name, gap_of(cells[role]), gap_of(cells[SMOOTHING]))
        for name, cells in _compared(evidence.ours, CHEXPERT, evidence.metric)
    ]


def _sizes(run: Run) -> dict[str, int]:
    """Label -> how many test records bear it."""
    prefix, groups = f"{LABEL}=", run.metrics["seeds"][0]["groups"]
    return {name.removeprefix(prefix): entry["n"] for name, entry in groups.items() if name.startswith(prefix)}


def _smallest(evidence: Evidence) -> Iterator[tuple[str, Value | None, Value | None]]:
    """(place, epsilon and label, what smoothing costs the rarest label, what it costs the others on average)."""
    for name, cells in _compared(evidence.ours, CHEXPERT, evidence.metric):
        unprotected, smoothed = cells[FREE], cells[SMOOTHING]
        if unprotected is None or smoothed is None:
            continue
        free, private = (label_scores(run, evidence.metric) for run in (unprotected, smoothed))
        costs = {
            label: value_of(free[label], evidence.metric) - value_of(private[label], evidence.metric)
            for label in free
            if label in private
        }
        if len(costs) > 1:
            sizes = _sizes(smoothed)
            rarest = min(costs, key=sizes.__getitem__)
            others = average(cost for label, cost in costs.items() if label != rarest)
            yield f"{name}, {rarest} ({sizes[rarest]})", costs[rarest], others


def fairness(evidence: Evidence) -> Finding:
    """Judge the claim: at epsilon 8 labels differ as without privacy, less than under DP-SGD; small ones lose more."""
    free = _gaps(evidence, FREE)
    parts = [
        Part.not_below(f"Smoothing's gap between labels no more than {_SIMILAR:g} above that without", free, _SIMILAR),
        Part.of("DP-SGD's gap over smoothing's", _gaps(evidence, DP_SGD)),
        Part.of("The gap without privacy over smoothing's", free),
        Part.of("Smoothing's cost on the rarest label over that on the others", _smallest(evidence)),
    ]
    missing = (
        "The study has no scores by label (evaluation.per_label) of cells in the roles instance-smoothing, dp-sgd and "
        "nonprivate (CheXpert)"
    )
    text = "No numbers: the figure that the text names shows areas along training"
    return noted(on_cells(parts, missing), text)


def compact_classes(evidence: Evidence) -> Finding:
    """Judge the claim: compact classes are classified best and leak least."""
    ratio = DISTANCES["dog"] / DISTANCES["car"]
    why = (
        "It needs the leakage and the compactness of each class: audits attack single records, and distances between "
        "private records are not released"
    )
    shown = []
    for name, cells in _compared(evidence.ours, CIFAR10, evidence.metric):
        run = cells[SMOOTHING]
        if run is not None:
            by_label = label_scores(run, evidence.metric)
            means = {label: value_of(scores, evidence.metric).number for label, scores in by_label.items()}
            if ends := gap(means):
                _, best, worst = ends
                shown.append(f"{name}: best {best} {means[best]:.1f}, worst {worst} {means[worst]:.1f}")
    here = ". ".join([why, *shown, audited(evidence)])
    return undecided(here, f"The distances alone: dog's is {ratio:.2f} times car's; no accuracy or attack by class")
