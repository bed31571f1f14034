"""What weights of classes are worth where one is rare: shirts of the demo's Fashion-MNIST against the other classes."""

import numpy as np

from benchmarks.persons import FEATURES
from benchmarks.timing import table, title

RARE, WEIGHT, SEEDS, SIZES, EPSILONS = 6, 0.1, 4, (1000, 12_000), (1, 8)
METHODS = {
    "least_squares": {},
    "feature_covariance": {},
    "first_order": {"learning_rate": 2.0, "steps": 30, "batch_size": "full", "clipping_norm": 1.0, "loss": "softmax"},
}


def run(threads: int, repeats: int) -> None:
    """Print AUC and balanced accuracy in percent, means over seeds, plain and weighed."""
    from dpstudy import fit
    from dpstudy.evaluation.metrics import metric_of

    train, test = ([np.load(FEATURES / f"{part}{what}.npy") for what in ("", "_labels")] for part in ("train", "test"))
    labels, answers = ((part[1] == RARE).astype(int) for part in (train, test))
    rows, classes = [], ("others", "shirts")
    for n in SIZES:
        some = np.random.default_rng(1).permutation(len(labels))[:n]
        common = {"classes": 2, "delta": min(1e-5, 0.1 / n)}
        for name, options in METHODS.items():
            for epsilon in EPSILONS:
                means = []
                for weights in (None, {0: WEIGHT}):
                    found = []
                    for seed in range(SEEDS):
                        model = fit(
                            name, train[0][some], labels[some], epsilon=epsilon, seed=seed, class_weights=weights,
                            **common, **options,
                        ).model  # fmt: skip
                        scores = model.scores(test[0].astype(np.float32))
                        area = 100 * metric_of("auc").value(scores, answers, classes)
                        found.append((area, metric_of("balanced_accuracy").value(scores, answers, classes)))
                    means.append(", ".join(f"{value:.1f}" for value in np.mean(found, 0)))
                rows.append((f"{n:,}", str(epsilon), name, *means))
    title(f"A class of a tenth of the records: AUC, balanced accuracy (%), means over {SEEDS} draws")
    table(("n", "eps", "method", "plain", f"others weigh {WEIGHT}"), rows)
