"""What privacy costs a class of which a tenth of the records is left, and what the others: DP-SGD on Fashion-MNIST.

On the features in the repository (studies/demo), each class in turn; the same records throughout.
"""

import math

import numpy as np

from benchmarks.persons import FEATURES
from benchmarks.timing import table, title

SEEDS, EPSILONS, KEPT, DELTA = 10, (1, 8), 10, 1e-5
CLASSES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
OPTIONS = {"learning_rate": 0.5, "steps": 200, "batch_size": 512, "clipping_norm": 1.0, "loss": "softmax"}


def thinned(labels: np.ndarray, rare: int) -> np.ndarray:
    """(m,) numbers of the records of which every KEPT-th of a class is left, and all others."""
    of_it = np.flatnonzero(labels == rare)
    return np.sort(np.concatenate([np.flatnonzero(labels != rare), of_it[::KEPT]]))


def accuracies(train: list[np.ndarray], test: list[np.ndarray], rare: int, epsilon: float, seed: int) -> np.ndarray:
    """(2,) percent of the rare class's test records that are classified rightly, and the mean of the other classes."""
    from dpstudy import fit

    kept = thinned(train[1], rare)
    model = fit(
        "first_order", train[0][kept], train[1][kept], classes=len(CLASSES), epsilon=epsilon, delta=DELTA, seed=seed,
        **OPTIONS,
    ).model  # fmt: skip
    right = model.scores(test[0].astype(np.float32)).argmax(1) == test[1]
    by_class = [100 * right[test[1] == one].mean() for one in range(len(CLASSES))]
    return np.array([by_class[rare], np.mean(by_class[:rare] + by_class[rare + 1 :])])


def run(threads: int, repeats: int) -> None:
    """Print the accuracies, as workflow/published/groups.csv has them, and the standard error of what it costs more."""
    train, test = ([np.load(FEATURES / f"{part}{what}.npy") for what in ("", "_labels")] for part in ("train", "test"))
    title(f"A class of which one record in {KEPT} is left: accuracy (%), means over {SEEDS} seeds")
    rows = []
    for rare, name in enumerate(CLASSES):
        free = np.array([accuracies(train, test, rare, math.inf, seed) for seed in range(SEEDS)])
        for epsilon in EPSILONS:
            private = np.array([accuracies(train, test, rare, epsilon, seed) for seed in range(SEEDS)])
            more = (free - private) @ [1, -1]
            numbers = (*free.mean(0), *private.mean(0), more.mean(), more.std(ddof=1) / math.sqrt(SEEDS))
            rows.append((name, str(epsilon), *(f"{number:.2f}" for number in numbers)))
    table(("class", "epsilon", "free", "free_others", "private", "private_others", "more", "error"), rows)
