"""What several images of a person are worth: one image each, three summed, and averages, by epsilon.

On the features of Fashion-MNIST that are in the repository (studies/demo), dealt to persons of one to six images of one
class, as many persons with more images as with fewer are rare. The same persons throughout; n is their number.
"""

from pathlib import Path

import numpy as np

from benchmarks.timing import table, title

FEATURES = Path(__file__).parent.parent / "studies" / "demo" / "fashion-mnist"
METHODS, EPSILONS, SEEDS, MOST, DELTA = ("least_squares", "feature_covariance", "kernel_mean"), (1, 4), 5, 6, 2e-5
WAYS = {"1 image": (1, "sum"), "3, summed": (3, "sum"), "3, averaged": (3, "average"), "6, averaged": (MOST, "average")}


def run(threads: int, repeats: int) -> None:
    """Print top-1 accuracies, means over seeds, each of which draws persons and noise anew."""
    from dpstudy import fit

    train, test = ([np.load(FEATURES / f"{part}{what}.npy") for what in ("", "_labels")] for part in ("train", "test"))
    rows, counts = [], []
    for epsilon in EPSILONS:
        for name in METHODS:
            found = []
            for seed in range(SEEDS):
                persons, place = dealt(train[1], np.random.default_rng(seed))
                counts.append(persons.max() + 1)
                for most, how in WAYS.values():
                    kept = place < most
                    given = {"subjects": persons[kept], "per_subject": most} | (
                        {"contributions": how} if most > 1 else {}
                    )
                    model = fit(
                        name, train[0][kept], train[1][kept], classes=10, epsilon=epsilon, delta=DELTA, seed=seed,
                        unit="subject", **given,
                    ).model  # fmt: skip
                    found.append(100 * np.mean(model.scores(test[0].astype(np.float32)).argmax(1) == test[1]))
            means = np.reshape(found, (SEEDS, len(WAYS))).mean(0)
            rows.append((str(epsilon), name, *(f"{value:.1f}" for value in means)))
    title(f"Persons with several images: top-1 (%), about {np.mean(counts):,.0f} persons, means over {SEEDS} draws")
    table(("eps", "method", *WAYS), rows)


def dealt(labels: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(n,) whose each record is, and the place of each among that person's, of persons with records of one class."""
    persons, places, first = np.zeros(len(labels), int), np.zeros(len(labels), int), 0
    for label in np.unique(labels):
        mine = rng.permutation(np.flatnonzero(labels == label))
        counts = np.minimum(rng.geometric(0.4, len(mine)), MOST)
        counts = counts[: np.searchsorted(np.cumsum(counts), len(mine)) + 1]
        whose = np.repeat(np.arange(len(counts)), counts)[: len(mine)]
        persons[mine] = first + whose
        places[mine] = np.arange(len(mine)) - np.searchsorted(whose, whose)
        first += len(counts)
    return persons, places
