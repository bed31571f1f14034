"""A made-up study that agrees with anon_smoothing, for the tests of its claims."""

import math

from dpstudy.tables.claims.anon_smoothing_printed import PAPER, printed_scores
from dpstudy.tables.claims.gather import Evidence
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.judge import judges
from dpstudy.tables.claims.scores import Point, Run, Scores
from dpstudy.tables.published import RESULTS, published_rows

ROWS = published_rows(RESULTS, PAPER)
PRINTED_SCORES = printed_scores(ROWS)
FUNCTIONS = judges("anon_smoothing")
INF = math.inf
SMOOTHING = {"projected_dim": 64, "margin": 10, "noise_delta": 1e-5, "batch_size": 4096, "neighbours": 5}
SIZES = {"CIFAR-10": (50_000, 10), "CheXpert": (224_316, 5)}
# What a study that agrees with the paper would find: (data set, role) -> {epsilon: on the smaller, on the larger}.
ACCURACY = {
    ("CIFAR-10", "instance-smoothing"): {3.0: (86.0, 94.0), 8.0: (90.5, 95.5)},
    ("CIFAR-10", "dp-sgd"): {3.0: (78.0, 92.0), 8.0: (83.0, 93.5)},
    ("CIFAR-10", "nonprivate"): {INF: (93.0, 97.0)},
    ("CIFAR-10", "kernel-mean"): {3.0: (80.0, 93.0), 8.0: (84.0, 94.0)},
    ("CheXpert", "instance-smoothing"): {2.0: (84.0, 85.0), 8.0: (84.5, 85.5)},
    ("CheXpert", "dp-sgd"): {2.0: (69.0, 70.0), 8.0: (70.0, 71.0)},
    ("CheXpert", "nonprivate"): {INF: (86.0, 87.0)},
}
# Scores on labels less the mean, and how many records bear them.
LABELS = {"Atelectasis": 100, "Edema": 300, "Effusion": 500}
APART = {"instance-smoothing": (-4.0, 1.0, 3.0), "dp-sgd": (-9.0, 2.0, 7.0), "nonprivate": (-2.5, 0.0, 5.0)}


def groups(role, mean, error):
    """The seeds of metrics.json with scores by label, as fractions."""
    shifts = (0.0,) if error is None else (-0.1, 0.0, 0.1)
    return [
        {
            "seed": seed,
            "auc": (mean + shift) / 100,
            "groups": {
                f"label={name}": {"n": n, "auc": (mean + away + shift) / 100}
                for (name, n), away in zip(LABELS.items(), APART.get(role, (0.0, 0.0, 0.0)), strict=True)
            },
        }
        for seed, shift in enumerate(shifts)
    ]


def audit(lower):
    """audit.json with one attack."""
    entry = {"bound": "clopper-pearson", "adjacency": "replace-one", "statistic": "likelihood ratio of a point"}
    return {"audits": [entry | {"runs": 1000, "confidence": 0.999, "epsilon_lower": lower}]}


def run(data, role, epsilon, mean, error=0.05, backbone="small", n=None, lower=None, **settings):
    """One cell."""
    size, classes = SIZES[data]
    smoothing = role == "instance-smoothing"
    options = (SMOOTHING if smoothing else {}) | settings
    metrics = {"classes": classes, "hyperparameters": options, "seeds": groups(role, mean, error)}
    ledger = {"epsilon": None if smoothing or math.isinf(epsilon) else epsilon}
    spent = None if math.isinf(epsilon) else epsilon
    curve = tuple(Point(float(epoch), spent, Value(mean - 4 + 2 * epoch, error)) for epoch in (1, 2))
    found = audit(lower if lower is not None else 4 * epsilon) if smoothing and spent else {}
    entry, value = f"{role} {settings or ''}", Value(mean, error)
    return Run(f"{data}, {backbone}", role, entry, epsilon, n or size, value, metrics, ledger, curve, found, backbone)


def scores_of(runs):
    """Scores of these runs; of several in one role the best counts."""
    values = {}
    for one in sorted(runs, key=lambda one: one.accuracy.mean):
        values[one.dataset, one.role, one.epsilon] = one.accuracy
    return Scores(values, runs)


def as_the_paper_says(error=0.05, wanted=lambda run: True):
    """All cells, or those that are wanted."""
    runs = [
        run(data, role, epsilon, mean, error, backbone)
        for (data, role), by_epsilon in ACCURACY.items()
        for epsilon, means in by_epsilon.items()
        for backbone, mean in zip(("small", "large"), means, strict=True)
    ]
    for name, other, mean in (("projected_dim", 16, 85.0), ("margin", 1, 84.0)):
        runs.append(run("CIFAR-10", "instance-smoothing", 3.0, mean, error, **{name: other}))
    return scores_of([one for one in runs if wanted(one)])


def evidence(ours=None, rows=ROWS, metric="auc"):
    """The printed numbers, and these cells."""
    return Evidence(printed_scores(rows), ours or Scores({}), [], rows, metric)


def verdict(claim, ours=None, **changes):
    """(verdict, what decided it) of the claim with these words."""
    found = FUNCTIONS[claim](evidence(ours, **changes))
    return found.verdict, found.decided_by
