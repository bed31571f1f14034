"""A made-up study that agrees with de2022, for the tests of its claims."""

import dataclasses
import math

from dpstudy.tables.claims.de2022_printed import (
    CIFAR10,
    CIFAR100,
    CITED,
    IMAGENET,
    PAPER,
    PLACES,
    RECORDS,
    printed_scores,
)
from dpstudy.tables.claims.gather import Evidence
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.judge import judges
from dpstudy.tables.claims.scores import Point, Run, Scores
from dpstudy.tables.published import HYPERPARAMETERS, RESULTS, published_rows
from tests.scenarios.claims.agreeing_study import moved

ROWS = published_rows(RESULTS, PAPER)
SETTINGS = published_rows(HYPERPARAMETERS, PAPER)
PRINTED_SCORES = printed_scores(ROWS)
FUNCTIONS = judges("de2022")
INF = math.inf
# What a study that agrees with the paper would find: (data set, role) -> accuracy by epsilon.
ONE = {
    (CIFAR10, "wrn-16-4"): {1: 57.0, 2: 64.9, 3: 69.5, 8: 79.5},
    (CIFAR10, "wrn-40-4"): {1: 56.0, 2: 65.9, 3: 70.7, 8: 81.4},
    (CIFAR10, "unaveraged"): {1: 55.0, 8: 78.0},
    (CIFAR10, "momentum"): {8: 79.4},
    (CIFAR10, "decay"): {8: 79.4},
    (CIFAR10, "regularised"): {8: 76.0},
    (CIFAR10, "all-layers"): {1: 94.8, 8: 96.6},
    (CIFAR10, "classifier"): {1: 93.1, 8: 94.2},
    (CIFAR10, "all-layers-smaller"): {1: 93.6, 8: 95.6},
    (CIFAR10, "all-layers-cifar100"): {1: 80.4, 8: 89.0},
    (CIFAR100, "all-layers"): {1: 71.4, 8: 81.8},
    (CIFAR100, "classifier"): {1: 70.3, 8: 77.6},
    (IMAGENET, "scratch-imagenet"): {8: 33.0},
    (IMAGENET, "jft-300m"): {1: 77.0, 8: 81.3},
    (IMAGENET, "jft-4b"): {1: 79.0, 8: 82.2},
    (IMAGENET, "nfnet"): {0.5: 83.9, 8: 86.8},
    (IMAGENET, "nonprivate-nfnet"): {INF: 88.5},
    (PLACES, "places-all"): {8: 55.1},
    (PLACES, "places-classifier"): {8: 54.4},
    (PLACES, "nonprivate-places-all"): {INF: 57.0},
    (PLACES, "nonprivate-places-classifier"): {INF: 54.5},
}
BATCHES = [(256, 8000, 0.25), (512, 4000, 0.5), (1024, 2000, 1.0), (2048, 2000, 1.0), (4096, 1900, 1.1)]  # B, T, rate


def run(dataset, role, epsilon, mean, error, entry="", tuned="", curve=(), **settings):
    """One cell."""
    private = not math.isinf(epsilon)
    metrics = {"classes": 10, "tuned_on": tuned or "beforehand", "hyperparameters": settings}
    said = ["The hyper-parameters were chosen beforehand; what that tells was not paid for."]
    events = [{"name": "gradient", "sensitivity": 1.0}] if private else []
    ledger = {"epsilon": 0.99 * epsilon if private else None, "not_accounted": said, "events": events}
    points = [Point(10.0 * (i + 1), e, Value(mean_, error)) for i, (e, mean_) in enumerate(curve)]
    value = Value(mean, error)
    return Run(dataset, role, entry or role, float(epsilon), RECORDS[dataset][0], value, metrics, ledger, tuple(points))


def of_lists(error):
    """The cells of roles that compare the entries of their list."""
    found = []
    for network in ("wrn-16-4", "wrn-40-4"):
        for i, (batch, steps, rate) in enumerate(BATCHES):
            names = {"network": network, "batch_size": batch, "steps": steps, "learning_rate_applied": rate}
            cell = run(CIFAR10, "batches", 8, 65.0 + 2 * i, error, f"{network} {batch}", "validation", **names)
            found.append(cell)
        for sigma, mean in ((6.0, 70.0), (3.0, 73.0), (2.0, 72.0), (1.0, 68.0)):
            names = {"network": network, "noise_multiplier": sigma, "steps": round(280 * sigma**2)}
            found.append(run(CIFAR10, "noise", 8, mean, error, f"{network} {sigma}", **names))
    for i, mean in enumerate((50.8, 66.3, 70.0, 71.4, 78.4, 79.7)):
        found.append(run(CIFAR10, "ablation", 8, mean, error, str(i)))
    for copies, mean in ((0, 70.0), (1, 66.0), (4, 72.0), (16, 76.0)):
        augmentation = {"augmentation": {"multiplicity": copies}} if copies else {}
        names = {"batch_size": 4096, "steps": 2468, "noise_multiplier": 3.0} | augmentation
        found.append(run(CIFAR10, "multiplicity", 8, mean, error, f"K = {copies}", **names))
    for epsilon in (1, 2, 4):
        for steps in (250, 500, 1000, 2000):
            lost = 2 * abs(math.log2(steps / (250 * epsilon)))
            found.append(run(CIFAR10, "iterations", epsilon, 90.0 - lost, error, f"T = {steps}", steps=steps))
    for norm in (0.1, 0.5, 1.0, 10.0):
        for rate, mean in ((1.0, 70.0), (2.0, 73.0)):
            names = {"clipping_norm": norm, "learning_rate": rate, "normalised": True}
            lost = 5.0 if norm > 1 else 0.0
            found.append(run(CIFAR10, "clipping", 8, mean - lost, error, f"C = {norm}, {rate}", **names))
    for network, plain, copied in (("wrn-16-4", (70, 80), (75, 82)), ("wrn-40-4", (66, 84), (78, 88))):
        for copies, (early, late) in ((0, plain), (16, copied)):
            names = {"augmentation": {"multiplicity": copies}} if copies else {}
            curve = [(2.0, early - 10.0), (8.0, float(early)), (64.0, float(late))]
            found.append(run(CIFAR10, "depths", 64, float(late), error, f"{network}, {copies}", curve=curve, **names))
    for mode, lead in (("classifier", 0.5), ("all", 0.0)):
        for depth, mean in ((50, 75.0), (101, 78.0), (200, 79.5)):
            found.append(run(IMAGENET, f"nf-resnets-{mode}", 8, mean + lead, error, f"NF-ResNet-{depth}"))
    for side, mean in ((224, 74.0), (256, 75.0), (320, 76.0)):
        found.append(run(IMAGENET, "image-sizes", 8, mean, error, str(side)))
    for network, mean in (("wrn-16-4", 94.5), ("wrn-40-4", 95.5)):
        found.append(run(CIFAR10, "nonprivate-wrn", INF, mean, error, network, network=network))
    return found


def as_the_paper_says(error=0.05, wanted=lambda run: True):
    """All cells, or those that are wanted, with what the paper cites."""
    runs = [run(*key, epsilon, mean, error) for key, means in ONE.items() for epsilon, mean in means.items()]
    runs = [one for one in (*runs, *of_lists(error)) if wanted(one)]
    values = {(one.dataset, one.role, one.epsilon): one.accuracy for one in runs}
    datasets = {one.dataset for one in runs}
    values |= {k: value for k, value in PRINTED_SCORES.values.items() if k[1] in CITED and k[0] in datasets}
    return Scores(values, runs)


def turned_round(scores):
    """The same with every order turned round."""
    flipped = moved(scores, lambda one: True, lambda mean: 100 - mean)
    cited = {k: dataclasses.replace(v, mean=100 - v.mean) for k, v in scores.values.items() if k[1] in CITED}
    return dataclasses.replace(flipped, values=flipped.values | cited)


def evidence(ours=None, settings=SETTINGS, rows=ROWS):
    """The printed numbers, and these cells."""
    return Evidence(printed_scores(rows), ours or Scores({}), settings, rows)


def verdict(claim, ours=None, **changes):
    """(verdict, what decided it) of the claim with these words."""
    found = FUNCTIONS[claim](evidence(ours, **changes))
    return found.verdict, found.decided_by
