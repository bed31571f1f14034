"""A made-up study that agrees with tramer2021, for the tests of its claims."""

import dataclasses
import math

from dpstudy.tables.claims.gather import Evidence
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.judge import judges
from dpstudy.tables.claims.names import MODELS
from dpstudy.tables.claims.scores import Point, Run, Scores
from dpstudy.tables.claims.tramer2021_printed import PAPER, PRIOR, RECORDS, printed_scores
from dpstudy.tables.published import HYPERPARAMETERS, RESULTS, published_rows

PRINTED_SCORES = printed_scores(published_rows(RESULTS, PAPER))
SETTINGS = published_rows(HYPERPARAMETERS, PAPER)
FUNCTIONS = {claim.replace("-", "_"): function for claim, function in judges("tramer2021").items()}
SETS = ("MNIST", "Fashion-MNIST", "CIFAR-10")
# What a study that agrees with the paper would find: role -> accuracy on each of SETS.
PRIVATE = {
    "linear": (98.9, 90.0, 70.0),
    "linear-printed": (98.9, 90.0, 70.0),
    "linear-shuffle": (98.8, 90.1, 69.9),
    "scatter-cnn": (98.5, 89.0, 72.0),
    "cnn": (98.2, 86.1, 59.5),
    "cnn-shuffle": (98.3, 86.0, 59.6),
    "cnn-smaller": (None, None, 60.0),
    "iteration": (None, None, 61.0),
    "transfer-cifar100": (None, None, 80.5),
    "transfer-imagenet": (None, None, 93.0),
    **{f"{model}-low": (90.0, 80.0, 60.0) for model in MODELS},
    **{f"{model}-high": (70.0, 60.0, 40.0) for model in MODELS},
}
FREE = {
    "unnormalised": (95.0, 83.0, 58.0),
    "group-normalised": (98.0, 90.0, 67.0),
    "data-normalised": (98.5, 91.0, 70.0),
    "nonprivate-linear": (99.0, 91.0, 71.0),
    "nonprivate-scatter-cnn": (99.1, 91.2, 74.0),
    "nonprivate-cnn": (99.2, 91.5, 80.0),
    "nonprivate-transfer-cifar100": (None, None, 84.0),
    "nonprivate-transfer-imagenet": (None, None, 95.0),
    **{f"{model}-low-clip": (90.5, 80.5, 60.5) for model in MODELS},
    **{f"{model}-high-clip": (92.0, 82.0, 62.0) for model in MODELS},
}
PARAMETERS = {"linear": (39_700, 39_700, 155_530), "cnn": (26_010, 26_010, 550_570), "cnn-smaller": (0, 0, 167_642)}
COMMON = {"clipping_norm": 0.1, "momentum": 0.9, "optimiser": "momentum"}


def run(role, dataset, epsilon, mean, error=0.05, n=None, entry="", curve=True, **metrics):
    """One cell; its curve rises by 4 points a quarter of training (by 8 for CNNs) and spends epsilon evenly."""
    spent = [None if math.isinf(epsilon) else epsilon * part / 4 for part in (1, 2, 3, 4)]
    rise = 8 if role.startswith("cnn") else 4
    points = [Point(10.0 * (i + 1), spent[i], Value(mean - rise * (3 - i), error)) for i in range(4)] if curve else ()
    ledger = {"epsilon": None if math.isinf(epsilon) else 0.8 * epsilon, "delta": 1e-5}
    metrics = {"classes": 10, "hyperparameters": COMMON} | metrics
    n = n or RECORDS[dataset]
    return Run(dataset, role, entry or role, epsilon, n, Value(mean, error), metrics, ledger, tuple(points))


def as_the_paper_says(datasets=SETS, error=0.05):
    runs = []
    for table, epsilons in ((PRIVATE, (2.0, 3.0)), (FREE, (math.inf,))):
        for role, means in table.items():
            for i, dataset in enumerate(SETS):
                size = {"parameters": PARAMETERS[role][i]} if role in PARAMETERS else {}
                if dataset in datasets and means[i] is not None:
                    runs += [run(role, dataset, epsilon, means[i], error, **size) for epsilon in epsilons]
    if "CIFAR-10" in datasets:
        for model, few, many in (("linear", 60.0, 71.0), ("cnn", 45.0, 76.0)):
            runs.append(run(model, "CIFAR-10", 3.0, few, error, n=10_000))
            runs.append(run(model, "CIFAR-10", 3.0, many, error, n=550_000))
            runs.append(run(model, "CIFAR-10", 3.0, (few + many) / 2, error, n=100_000))
            runs.append(run(f"nonprivate-{model}", "CIFAR-10", math.inf, 85.0, error, n=550_000))
    for entry, private, free in (("few", 70.0, 80.0), ("many", 60.0, 85.0)):
        runs.append(run("random-patches", datasets[0], 3.0, private, error, entry=entry))
        runs.append(run("random-patches", datasets[0], math.inf, free, error, entry=entry))
    runs += [run("cnn-batches", datasets[0], 3.0, 98.0 + d, error, entry=str(d)) for d in (0.0, 0.3, -0.2)]
    values = {(r.dataset, r.role, r.epsilon): r.accuracy for r in runs if r.n == RECORDS[r.dataset]}
    values |= {key: value for key, value in PRINTED_SCORES.values.items() if key[1] == PRIOR and key[0] in datasets}
    whole, resized = ([r for r in runs if (r.n == RECORDS[r.dataset]) == same] for same in (True, False))
    return Scores(values, whole, resized=resized)


def moved(scores, wanted, move):
    """The same with the accuracies of the runs that are `wanted` moved."""

    def new(value):
        return dataclasses.replace(value, mean=move(value.mean))

    def other(r):
        curve = tuple(point._replace(accuracy=new(point.accuracy)) for point in r.curve)
        return dataclasses.replace(r, accuracy=new(r.accuracy), curve=curve) if wanted(r) else r

    runs, resized = ([other(r) for r in group] for group in (scores.runs, scores.resized))
    values = scores.values | {(r.dataset, r.role, r.epsilon): r.accuracy for r in runs if wanted(r)}
    return Scores(values, runs, scores.searches, resized)


def turned_round(scores):
    """The same with every order turned round."""
    flipped = moved(scores, lambda r: True, lambda mean: 100 - mean)
    prior = {key: Value(100 - value.mean) for key, value in scores.values.items() if key[1] == PRIOR}
    return dataclasses.replace(flipped, values=flipped.values | prior)


def evidence(ours=None, printed=PRINTED_SCORES, settings=SETTINGS):
    return Evidence(printed, ours or Scores({}), settings)


def verdict(name, ours=None, **changes):
    found = FUNCTIONS[name](evidence(ours, **changes))
    return found.verdict, found.decided_by


def changed(scores, role, by, **where):
    """The same with the accuracies of a role moved."""
    where = {"role": role} | where
    return moved(scores, lambda r: all(getattr(r, k) == v for k, v in where.items()), lambda mean: mean + by)
