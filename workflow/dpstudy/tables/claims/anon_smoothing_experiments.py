"""Claims of anon_smoothing about its experiments: accuracy (Table 1, section 4.3), areas under curves (section 4.4,
Figure 3), classes and subgroups (sections 1 and 4.4), settings, data and metrics: judges, and what comparisons in
workflow/published/claims/anon_smoothing.yaml compare.

Smoothing stands at the epsilon that it claims. Table 1 is about CIFAR-10, Figure 3 about CheXpert; `counterparts` says
what stands for either. Scores by label stand in metrics.json.
"""

import json
import math
from collections.abc import Iterator, Mapping
from itertools import pairwise, product

from dpstudy.evaluation.groups import gap
from dpstudy.evaluation.judge import LABEL
from dpstudy.tables.claims.anon_smoothing_printed import CHEXPERT, CIFAR10, DP_SGD, FREE, RECORDS, SMOOTHING
from dpstudy.tables.claims.anon_smoothing_privacy import audited
from dpstudy.tables.claims.finding import CELLS, MEASUREMENT, Finding, decided, undecided
from dpstudy.tables.claims.grid import Triples, Value, average, number
from dpstudy.tables.claims.scores import Evidence, Run, Scores, matched, places, value_of
from dpstudy.tables.grouping import grouped
from dpstudy.tables.published import LEAKS, published_rows

_AT = 8.0  # the epsilon at which subgroups are compared
_SETTINGS = {"projected_dim": 64, "margin": 10, "batch_size": 4096, "neighbours": 5}
_CLASSES = {CIFAR10: 10, CHEXPERT: 5}


def costs_of_backbones(scores: Scores, role: str) -> Triples:
    """(larger backbone and epsilon, cost on the smaller, cost on the larger), in points below no privacy."""
    order = places(scores, CIFAR10, role)
    for epsilon in sorted({e for place in order for e in scores.finite(place, role)}):
        accuracies = {place: [scores.get(place, *at) for at in ((FREE, math.inf), (role, epsilon))] for place in order}
        costs = [(place, free - private) for place, (free, private) in accuracies.items() if free and private]
        for (_, small), (place, large) in pairwise(costs):
            yield f"{place} {number(epsilon)}", small, large


def along_training(scores: Scores) -> Triples:
    """The points of smoothing's curves on CheXpert, each beside DP-SGD's last point of no more epochs."""
    for run, other in matched(scores.of_role(SMOOTHING), scores.of_role(DP_SGD), "dataset", "epsilon", "n"):
        for point in run.curve if run.private and run.data == CHEXPERT else ():
            if earlier := [one for one in other.curve if one.epochs <= point.epochs]:
                yield f"{run.at}, epoch {point.epochs:g}", point.accuracy, earlier[-1].accuracy


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
        if finite := scores.finite(place, SMOOTHING):
            epsilon = _AT if _AT in finite else finite[-1]
            best = {}
            for role, at in ((SMOOTHING, epsilon), (DP_SGD, epsilon), (FREE, math.inf)):
                runs = [run for run in scores.of_role(role) if (run.dataset, run.epsilon) == (place, at)]
                labelled = [run for run in runs if label_scores(run, metric)]
                best[role] = max(labelled, key=lambda run: run.accuracy.number, default=None)
            yield f"{place} {number(epsilon)}", best


def costs_by_label(scores: Scores, evidence: Evidence) -> Triples:
    """(place, epsilon and label, what smoothing costs the rarest label, what it costs the others on average)."""
    metric = evidence.metric
    for name, cells in _compared(evidence, CHEXPERT):
        smoothed = cells[SMOOTHING]
        free, private = (label_scores(run, metric) if run else {} for run in (cells[FREE], smoothed))
        costs = {x: value_of(free[x], metric) - value_of(private[x], metric) for x in free if x in private}
        if smoothed and len(costs) > 1:
            sizes = {label: smoothed.metrics["seeds"][0]["groups"][f"{LABEL}={label}"]["n"] for label in costs}
            rarest = min(costs, key=sizes.__getitem__)
            others = average(cost for label, cost in costs.items() if label != rarest)
            yield f"{name}, {rarest} ({sizes[rarest]})", costs[rarest], others


def gaps_beside_smoothing(scores: Scores, role: str, evidence: Evidence) -> Triples:
    """(place and epsilon, the gap between labels of cells in a role, that of smoothing)."""
    for name, cells in _compared(evidence, CHEXPERT):
        left, right = (label_gap(run, evidence.metric) if run else None for run in (cells[role], cells[SMOOTHING]))
        yield name, left, right


def classes_and_audits(evidence: Evidence) -> str:
    """Which classes are classified best and worst, and what audits found."""
    shown = []
    for name, cells in _compared(evidence, CIFAR10):
        by_label = label_scores(run, evidence.metric) if (run := cells[SMOOTHING]) else {}
        means = {label: value_of(scores, evidence.metric).number for label, scores in by_label.items()}
        if ends := gap(means):
            _, best, worst = ends
            shown.append(f"{name}: best {best} {means[best]:.1f}, worst {worst} {means[worst]:.1f}")
    return ". ".join([*shown, audited(evidence)])


def _settings(run: Run) -> dict:
    return dict(run.metrics.get("hyperparameters", {}))


def with_the_papers(scores: Scores, setting: str) -> Triples:
    """(cell, accuracy with the paper's value of a setting, with another) of cells alike in all other settings."""

    def rest(run: Run) -> tuple:
        # What only follows from the margin is no setting.
        others = {key: value for key, value in _settings(run).items() if key not in (setting, "error_bound")}
        return run.dataset, run.epsilon, run.n, json.dumps(others, sort_keys=True, default=str)

    for runs in grouped((run for run in scores.of_role(SMOOTHING) if run.private and setting in _settings(run)), rest):
        values = [(run, _settings(run)[setting]) for run in runs]
        for (run, same), (other, value) in product(values, repeat=2):
            if same == _SETTINGS[setting] != value:
                yield f"{other.entry}: {value:g}", run.accuracy, other.accuracy


def as_in_the_paper(evidence: Evidence) -> str:
    """How many cells have the paper's settings."""
    runs = evidence.ours.of_role(SMOOTHING)
    same = sum(all(_settings(run).get(name) == value for name, value in _SETTINGS.items()) for run in runs)
    listed = ", ".join(f"{name} {value:g}" for name, value in _SETTINGS.items())
    return f"{same} of {len(runs)} cells have the paper's {listed}" if runs else ""


def data_sets(evidence: Evidence) -> Finding:
    """Judge the claim: CIFAR-10 has 50,000 records of 10 classes, CheXpert 224,316 X-rays with 5 labels."""
    sentences, whole = [], []
    for data, (size,) in RECORDS.items():
        runs = [run for run in evidence.ours.runs if run.data == data]
        sizes = sorted({(run.n, run.metrics["classes"]) for run in runs})
        if sizes:
            counts = " and ".join(f"{n:,} training records of {classes} classes" for n, classes in sizes)
            sentences.append(f"{data}: {counts} here, {size:,} of {_CLASSES[data]} in the text")
            whole.append(sizes == [(size, _CLASSES[data])])
    if not sentences:
        return undecided("The study has no cells on CIFAR-10 or CheXpert")
    if all(whole):
        return decided(True, CELLS, "", "; ".join(sentences))
    return undecided(f"{'; '.join(sentences)}. Other records than the paper's say nothing of its own")


def independence(evidence: Evidence) -> Finding:
    """Judge the claim: nothing depends on iterations, parameters, batch normalisation or subpopulations.

    It does if what is published tells more after more epochs, and more than is claimed.
    """
    rows = published_rows(LEAKS, "anon_smoothing")
    text = "σ of Theorem 1 has neither iterations nor parameters in it, but the projection is trained on private "
    text += "records for as long as one likes, and published."
    here = f"Attacks on the projection alone, at a claimed ε of {rows[0]['epsilon']} (made-up records, "
    here += f"{100 * float(rows[0]['confidence']):g} % confidence): "
    here += "; ".join(f"AUC {row['auc']}, ε ≥ {row['lower']} at epoch {row['epochs']}" for row in rows)
    more = all(float(after["auc"]) > float(before["auc"]) for before, after in pairwise(rows))
    if more and any(float(row["lower"]) > float(row["epsilon"]) for row in rows):
        return decided(False, MEASUREMENT, text, here)
    return undecided(f"{text} {here}: no more than is claimed, or no more after more epochs")


def both_metrics(evidence: Evidence) -> str:
    """Accuracies and areas of cells without privacy."""
    free, shown = [run for run in evidence.ours.of_role(FREE) if run.data == CIFAR10 and not run.private], []
    for run, *_ in grouped(free, lambda run: run.dataset):
        seeds = run.metrics["seeds"]
        both = [metric for metric in ("top1", "auc") if all(metric in seed for seed in seeds)]
        values = ", ".join(f"{m} {value_of([seed[m] for seed in seeds], m).mean:.1f} %" for m in both)
        shown.append(f"{run.dataset}, no privacy: {values}")
    return "; ".join(shown)
