"""What a calibration does: calibration error, Brier score and accuracy before and after it, by n and epsilon.

On the features of Fashion-MNIST that are in the repository (studies/demo), with 2,000 test records. The error after it
is beside that of the same method without it, which has the whole budget.
"""

from pathlib import Path

import numpy as np

from benchmarks.timing import table, title

FEATURES = Path(__file__).parent.parent / "studies" / "demo" / "fashion-mnist"
METHODS, SIZES, EPSILONS, SEEDS = (
    ("least_squares", "feature_covariance", "kernel_mean"),
    (1000, 3000, 12_000),
    (1, 8),
    5,
)
SHARE, DELTA = "auto", 5e-5


def run(threads: int, repeats: int) -> None:
    """Print means over seeds, each of which draws its own n records."""
    from dpstudy import fit
    from dpstudy.evaluation.metrics import metric_of

    title(f"Calibrated probabilities: {SHARE} share of mu^2, means over {SEEDS} draws of records and noise, 10 classes")
    train, test = ([np.load(FEATURES / f"{part}{what}.npy") for what in ("", "_labels")] for part in ("train", "test"))
    classes, metrics = [str(number) for number in range(10)], [metric_of(name) for name in ("ece", "brier", "top1")]
    rows = []
    for size in SIZES:
        for epsilon in EPSILONS:
            for name in METHODS:
                found = []
                for seed in range(SEEDS):
                    chosen = np.random.default_rng(seed).permutation(len(train[0]))[:size]
                    records = [np.asarray(part[chosen]) for part in train]
                    given = {"classes": 10, "epsilon": epsilon, "delta": DELTA, "seed": seed}
                    for more in ({}, {"calibration": SHARE}):
                        scores = fit(name, *records, **given, **more).model.scores(test[0].astype(np.float32))
                        found.append([metric.value(scores, test[1], classes) for metric in metrics])
                means = np.reshape(found, (SEEDS, 2, len(metrics))).mean(0)
                values = [
                    f"{before:.{digits}f} -> {after:.{digits}f}"
                    for before, after, digits in zip(*means, (1, 3, 1), strict=True)
                ]
                rows.append((f"{size:,}", str(epsilon), name, *values))
    table(("n", "eps", "method", "calibration error (%)", "Brier score", "top-1 (%)"), rows)
