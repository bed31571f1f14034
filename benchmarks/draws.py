"""How often the interval of a mean over repeated splits (tables/intervals.py) covers the truth, by simulation.

Persons are drawn, with images that resemble each other, and cut into train and test twenty times; each time the class
means of the training images, with noise, score those that are held out. The truth is what the same training has on
thousands of other persons, on average over persons to learn from. The ideal half length is 1.96 times the standard
deviation of the mean, which nobody knows who has these persons alone.
"""

import numpy as np

from benchmarks.timing import table, title
from dpstudy.evaluation.metrics import metric_of
from dpstudy.tables.intervals import over_draws

PERSONS, SPLITS, TEST, IMAGES = 264, 20, 0.3, 2.5
DIMS, BEARERS, TRUTHS = 50, (0.1, 0.3), 150
CASES = [(apart, noise) for apart in (0.0, 0.8, 2.0) for noise in (0.0, 3.0, 6.0)]


def run(threads: int, repeats: int) -> None:
    """Print coverage and length by how far apart the labels are, and the noise."""
    runs, rows = 100 * repeats, []
    for bearers in BEARERS:
        for apart, noise in CASES:
            rng = np.random.default_rng(0)
            truth = np.mean([_elsewhere(rng, bearers, apart, noise) for _ in range(TRUTHS)])
            found = np.array([_interval(rng, bearers, apart, noise) for _ in range(runs)])
            mean, low, high = found.T
            covered = 100 * np.mean((low <= truth) & (truth <= high))
            half, ideal = np.mean(high - low) / 2, 1.96 * mean.std()
            rows.append((f"{bearers:.0%}", f"{apart:g}", f"{noise:g}", f"{truth:.3f}", f"{covered:.0f}", f"{half:.3f}",
                         f"{ideal:.3f}"))  # fmt: skip
    title(f"Mean AUC over {SPLITS} splits of {PERSONS} persons: intervals of 95 %, {runs} collections a case")
    table(("bearers", "apart", "noise", "truth", "covered (%)", "half length", "ideal"), rows)


def _persons(rng: np.random.Generator, count: int, bearers: float, apart: float):
    """(whose, features of norm 1, labels) of images."""
    who = np.repeat(np.arange(count), np.minimum(rng.geometric(1 / IMAGES, count), 6))
    labels = (rng.random(count) < bearers)[who] ^ (rng.random(len(who)) < 0.1)
    features = np.sqrt(0.5) * (rng.standard_normal((len(who), DIMS)) + rng.standard_normal((count, DIMS))[who])
    features[:, 0] += apart * labels
    return who, features / np.linalg.norm(features, axis=1, keepdims=True), labels.astype(int)


def _area(rng: np.random.Generator, train, test, noise: float) -> float:
    direction = train[0].T @ (train[1] - train[1].mean()) + noise * rng.standard_normal(DIMS)
    scores = np.column_stack([np.zeros(len(test[1])), test[0] @ direction])
    return metric_of("auc").value(scores, test[1], ("no", "yes"))


def _elsewhere(rng: np.random.Generator, bearers: float, apart: float, noise: float) -> float:
    own = _persons(rng, round(PERSONS * (1 - TEST)), bearers, apart)[1:]
    return _area(rng, own, _persons(rng, 1500, bearers, apart)[1:], noise)


def _interval(rng: np.random.Generator, bearers: float, apart: float, noise: float) -> tuple[float, float, float]:
    who, features, labels = _persons(rng, PERSONS, bearers, apart)
    found, shares = [], []
    while len(found) < SPLITS:
        tested = rng.random(PERSONS) < TEST
        held = tested[who]
        if len(np.unique(labels[held])) == 2:
            train, test = ((features[rows], labels[rows]) for rows in (~held, held))
            found.append([_area(rng, train, test, noise)])
            shares.append(tested.sum() / (~tested).sum())
    interval = over_draws(found, float(np.mean(shares)), "auc")
    assert interval is not None
    return float(np.mean(found)), *interval
