"""Claims of anon_smoothing on settings, data and metrics, and those that no cell can decide."""

import json
import math
import statistics

from dpstudy.tables.claims.anon_smoothing_printed import CHEXPERT, CIFAR10, DISTANCES, FREE, RECORDS, SMOOTHING
from dpstudy.tables.claims.finding import CELLS, COMPUTED, Finding, Triples, decided, number, undecided
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Run, Scores, places, value_of
from dpstudy.tables.published import DISTANCES as MEASURED_DISTANCES
from dpstudy.tables.published import published_rows

_SETTINGS = {"projected_dim": 64, "margin": 10, "batch_size": 4096, "neighbours": 5}
_CLASSES = {CIFAR10: 10, CHEXPERT: 5}


def _settings(run: Run) -> dict:
    return dict(run.metrics.get("hyperparameters", {}))


def with_the_papers(scores: Scores, setting: str) -> Triples:
    """(cell, accuracy with the paper's value of a setting, with another) of cells alike in all other settings."""
    groups: dict[tuple, list[Run]] = {}
    for run in scores.of_role(SMOOTHING):
        options = _settings(run)
        if setting in options and not math.isinf(run.epsilon):
            # What only follows from the margin is no setting.
            rest = {key: value for key, value in options.items() if key not in (setting, "error_bound")}
            key = (run.dataset, run.epsilon, run.n, json.dumps(rest, sort_keys=True, default=str))
            groups.setdefault(key, []).append(run)
    for runs in groups.values():
        values = [(run, _settings(run)[setting]) for run in runs]
        same, others = ([one for one in values if (one[1] == _SETTINGS[setting]) == so] for so in (True, False))
        for run, _ in same:
            for other, value in others:
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
    """Judge the claim: nothing depends on iterations, parameters, batch normalisation or subpopulations."""
    why = (
        "σ of Theorem 1 has neither iterations nor parameters in it, but the projection is trained on private records "
        "for as long as one likes and published: what it tells would have to be attacked after few and many epochs. "
        "Accuracies decide it no more: they would have to be equal, not merely close"
    )
    curves = [run for run in evidence.ours.of_role(SMOOTHING) if len(run.curve) > 1 and not math.isinf(run.epsilon)]
    alike: dict[tuple[str, float], Run] = {}
    for run in curves:
        alike.setdefault((run.dataset, run.epsilon), run)
    shown = [
        f"{run.dataset}, ε = {number(run.epsilon)}: "
        + ", ".join(f"{one.accuracy.mean:.1f} at epoch {one.epochs:g}" for one in (run.curve[0], run.curve[-1]))
        for run in alike.values()
    ]
    backbones = {run.backbone for run in evidence.ours.of_role(SMOOTHING)}
    has = f"The study has {len(backbones)} backbones in the role instance-smoothing and {len(curves)} curves"
    return undecided(". ".join([why, f"{has}: {'; '.join(shown)}" if shown else has]))


def measure(evidence: Evidence) -> Finding:
    """Judge the claim on the metric of Table 1."""
    printed = [run.accuracy.number for run in evidence.printed.runs]
    text = f"Table 1 calls its numbers performance: {min(printed)} to {max(printed)}; they are read as top-1 accuracy"
    shown = []
    for place in places(evidence.ours, CIFAR10, FREE):
        runs = (run for run in evidence.ours.of_role(FREE) if run.dataset == place and math.isinf(run.epsilon))
        if run := next(runs, None):
            seeds = run.metrics["seeds"]
            both = [metric for metric in ("top1", "auc") if all(metric in seed for seed in seeds)]
            values = ", ".join(f"{m} {value_of([seed[m] for seed in seeds], m).mean:.1f} %" for m in both)
            shown.append(f"{place}, no privacy: {values}")
    why = "What a table was computed with can only be said by its authors"
    return undecided(". ".join([why, "; ".join(shown)]) if shown else why, text)


def neighbour_distances(evidence: Evidence) -> Finding:
    """Judge the claim on the histogram of distances: cars are nearer to each other than classes are on average, dogs
    farther. The paper does not name its features; ours are those of a network that saw ImageNet."""
    text = ", ".join(f"{name} {distance:g}" for name, distance in DISTANCES.items())
    rows = published_rows(MEASURED_DISTANCES, "anon_smoothing")
    mean = statistics.fmean(float(row["mean"]) for row in rows)
    shown = {row["class"]: float(row["mean"]) for row in rows}
    car, dog = shown["automobile"], shown["dog"]
    here = (
        f"{rows[0]['dataset']}, features of {rows[0]['features']}: car {car:.3g}, dog {dog:.3g}, all classes {mean:.3g}"
    )
    return decided(car < mean < dog, COMPUTED, f"{text}; their unit depends on the features", here)
