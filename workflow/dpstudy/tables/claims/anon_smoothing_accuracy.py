"""Claims of anon_smoothing about accuracy (Table 1, section 4.3), areas under curves (section 4.4, Figure 3), and
classes and subgroups (sections 1 and 4.4): judges, and what comparisons in anon_smoothing.yaml compare.

Smoothing stands at the epsilon that it claims. Table 1 is about CIFAR-10, Figure 3 about CheXpert; `counterparts` says
what stands for either. Scores by label stand in metrics.json.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise, product

from dpstudy.evaluation.groups import gap
from dpstudy.evaluation.judge import LABEL
from dpstudy.tables.claims.anon_smoothing_printed import CHEXPERT, CIFAR10, DISTANCES, DP_SGD, FREE, SMOOTHING
from dpstudy.tables.claims.anon_smoothing_privacy import audited
from dpstudy.tables.claims.finding import Finding, Part, Triples, by_roles, noted, number, on_cells, undecided
from dpstudy.tables.claims.grid import Value, average
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Run, Scores, places, value_of

_AT = 8.0  # the epsilon at which subgroups are compared
_SIMILAR = 2.0  # points of gaps that still read as "similar"


def larger_backbones(evidence: Evidence) -> Finding:
    """Judge the claim: the cost of smoothing falls with each larger backbone; DP-SGD's is given for comparison."""

    def part(scores: Scores, role: str, name: str) -> Part:
        return Part.of(f"{name}: cost on a backbone over that on the next larger", _costs(scores, role))

    roles = "instance-smoothing and nonprivate (CIFAR-10, two or more feature sets, the larger later)"
    finding = by_roles(evidence, lambda scores: [part(scores, SMOOTHING, "Instance smoothing")], roles)
    beside = [part(scores, DP_SGD, "DP-SGD") for scores in (evidence.printed, evidence.ours)]
    return noted(finding, *(f"Beside it {each}" if each.counted else "" for each in beside))


def _costs(scores: Scores, role: str) -> Triples:
    """(larger backbone and epsilon, cost on the smaller, cost on the larger), in points below no privacy."""
    order = places(scores, CIFAR10, role)
    for epsilon in sorted({e for place in order for e in scores.epsilons(place, role) if not math.isinf(e)}):
        accuracies = {place: [scores.get(place, *at) for at in ((FREE, math.inf), (role, epsilon))] for place in order}
        costs = [(place, free - private) for place, (free, private) in accuracies.items() if free and private]
        for (_, small), (place, large) in pairwise(costs):
            yield f"{place} {number(epsilon)}", small, large


def along_training(scores: Scores) -> Triples:
    """The points of smoothing's curves on CheXpert, each beside DP-SGD's last point of no more epochs."""
    for run, other in product(scores.of_role(SMOOTHING), scores.of_role(DP_SGD)):
        alike = (run.dataset, run.epsilon, run.n) == (other.dataset, other.epsilon, other.n)
        if not alike or run.data != CHEXPERT or math.isinf(run.epsilon):
            continue
        for point in run.curve:
            earlier = [one for one in other.curve if one.epochs <= point.epochs]
            if earlier:
                name = f"{run.dataset} {number(run.epsilon)}, epoch {point.epochs:g}"
                yield name, point.accuracy, earlier[-1].accuracy


def beside_no_privacy(scores: Scores) -> Triples:
    """(place and finite epsilon, smoothing, no privacy) on CheXpert."""
    return [
        (f"{place} {number(e)}", scores.get(place, SMOOTHING, e), scores.get(place, FREE, math.inf))
        for place in places(scores, CHEXPERT)
        for e in scores.epsilons(place, SMOOTHING)
        if not math.isinf(e)
    ]


def label_scores(run: Run, metric: str) -> dict[str, list[float]]:
    """Label -> the metric on it for each seed, where every seed has it."""
    prefix, seeds = f"{LABEL}=", [seed.get("groups", {}) for seed in run.metrics.get("seeds", ())]
    return {
        name.removeprefix(prefix): [groups[name][metric] for groups in seeds]
        for name in (seeds[0] if seeds else {})
        if name.startswith(prefix) and all(metric in groups.get(name, {}) for groups in seeds)
    }


def label_gap(run: Run, metric: str) -> Value | None:
    """The difference between the best and the worst label in each seed; None for fewer than two labels."""
    by_label = label_scores(run, metric)
    if len(by_label) < 2:
        return None
    by_seed = (dict(zip(by_label, scores, strict=True)) for scores in zip(*by_label.values(), strict=True))
    return value_of([ends[0] for seed in by_seed if (ends := gap(seed))], metric)


def _compared(evidence: Evidence, data: str) -> Iterator[tuple[str, Mapping[str, Run | None]]]:
    """(place and epsilon, role -> the best cell with labels' scores) for each backbone, at epsilon 8 or the largest
    finite one there is."""
    scores, metric = evidence.ours, evidence.metric
    for place in places(scores, data, SMOOTHING):
        finite = [epsilon for epsilon in scores.epsilons(place, SMOOTHING) if not math.isinf(epsilon)]
        if finite:
            epsilon = _AT if _AT in finite else finite[-1]
            cells = {
                role: [run for run in scores.of_role(role) if (run.dataset, run.epsilon) == (place, at)]
                for role, at in ((SMOOTHING, epsilon), (DP_SGD, epsilon), (FREE, math.inf))
            }
            labelled = {role: [run for run in runs if label_scores(run, metric)] for role, runs in cells.items()}
            best = {
                role: max(runs, key=lambda run: run.accuracy.number, default=None) for role, runs in labelled.items()
            }
            yield f"{place} {number(epsilon)}", best


def _smallest(evidence: Evidence) -> Triples:
    """(place, epsilon and label, what smoothing costs the rarest label, what it costs the others on average)."""
    metric = evidence.metric
    for name, cells in _compared(evidence, CHEXPERT):
        unprotected, smoothed = cells[FREE], cells[SMOOTHING]
        if unprotected is None or smoothed is None:
            continue
        free, private = (label_scores(run, metric) for run in (unprotected, smoothed))
        costs = {x: value_of(free[x], metric) - value_of(private[x], metric) for x in free if x in private}
        if len(costs) > 1:
            sizes = {label: smoothed.metrics["seeds"][0]["groups"][f"{LABEL}={label}"]["n"] for label in costs}
            rarest = min(costs, key=sizes.__getitem__)
            others = average(cost for label, cost in costs.items() if label != rarest)
            yield f"{name}, {rarest} ({sizes[rarest]})", costs[rarest], others


def fairness(evidence: Evidence) -> Finding:
    """Judge the claim: at epsilon 8 labels differ as without privacy, less than under DP-SGD; small ones lose more."""
    gaps = [
        (name, {role: label_gap(run, evidence.metric) if run else None for role, run in cells.items()})
        for name, cells in _compared(evidence, CHEXPERT)
    ]
    free, sgd = ([(name, by_role[role], by_role[SMOOTHING]) for name, by_role in gaps] for role in (FREE, DP_SGD))
    similar = f"Smoothing's gap between labels no more than {_SIMILAR:g} above that without"
    parts = [
        Part.of(similar, free, _SIMILAR),
        Part.of("DP-SGD's gap over smoothing's", sgd),
        Part.of("The gap without privacy over smoothing's", free),
        Part.of("Smoothing's cost on the rarest label over that on the others", _smallest(evidence)),
    ]
    missing = (
        "The study has no scores by label (evaluation.per_label) of cells in the roles instance-smoothing, dp-sgd and "
        "nonprivate (CheXpert)"
    )
    return on_cells(parts, missing, "No numbers: the figure that the text names shows areas along training")


def compact_classes(evidence: Evidence) -> Finding:
    """Judge the claim: compact classes are classified best and leak least."""
    ratio = DISTANCES["dog"] / DISTANCES["car"]
    why = (
        "It needs the leakage and the compactness of each class: audits attack single records, and distances between "
        "private records are not released"
    )
    shown = []
    for name, cells in _compared(evidence, CIFAR10):
        by_label = label_scores(run, evidence.metric) if (run := cells[SMOOTHING]) else {}
        means = {label: value_of(scores, evidence.metric).number for label, scores in by_label.items()}
        if ends := gap(means):
            _, best, worst = ends
            shown.append(f"{name}: best {best} {means[best]:.1f}, worst {worst} {means[worst]:.1f}")
    here = ". ".join([why, *shown, audited(evidence)])
    return undecided(here, f"The distances alone: dog's is {ratio:.2f} times car's; no accuracy or attack by class")
