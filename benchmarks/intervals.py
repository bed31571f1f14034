"""How often 95 % intervals of test records cover the truth, and how long they are, by simulation.

Persons are drawn, their images scored, and `judge` asked for the interval, again and again. Scores are normal, those of
a person correlated by a half. The ideal length is that between the 2.5th and the 97.5th percentile of the values
themselves, which nobody knows who has one test split; percentiles are those of the bootstrap samples.
"""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from benchmarks.timing import table, title, verdict
from dpstudy.evaluation.judge import judge
from dpstudy.evaluation.metrics import metric_of

COVERAGE, LENGTH = 0.93, 1.3  # goals
SAMPLES = 200
_ALIKE = 0.5  # the correlation of a person's scores
_MANY = 400_000  # persons that the truth is taken from, where no formula has it


@dataclass(frozen=True)
class Case:
    """A test split to be drawn: persons that bear each label (of `labels` labels), and that do not, or of exclusive
    classes all persons; mean images of a person; the metric and how well it is told (an area, or a share)."""

    metric: str
    bearers: int
    others: int
    truth: float
    images: float = 1.0
    labels: int = 1
    skew: float = 1.0  # standard deviation of the bearers' scores
    mixed: bool = False  # a person's images bear labels each for itself

    def drawn(self, rng: np.random.Generator, times: int = 1):
        """(scores, labels, persons)."""
        count = (self.bearers + self.others) * times
        images = np.ones(count, int) if self.images == 1 else np.minimum(rng.geometric(1 / self.images, count), 12)
        who = np.repeat(np.arange(count), images)

        def noise() -> np.ndarray:
            own = rng.standard_normal((count, self.labels))[who]
            alone = rng.standard_normal((len(who), self.labels))
            return np.sqrt(_ALIKE) * own + np.sqrt(1 - _ALIKE) * alone if self.images > 1 else alone

        if self.metric in ("top1", "balanced_accuracy"):
            truth = (np.arange(count) < self.bearers * times)[who].astype(int)
            right = noise()[:, 0] < ndtri(self.truth)
            return np.eye(2)[np.where(right, truth, 1 - truth)], truth, who
        bears = np.array([rng.permutation(count) < self.bearers * times for _ in range(self.labels)]).T[who]
        if self.mixed:
            bears = rng.random(bears.shape) < self.bearers / (self.bearers + self.others)
        apart = np.sqrt(1 + self.skew**2) * ndtri(self.truth)
        scores = np.where(bears, apart + self.skew * noise(), noise())
        return scores, bears.astype(int), who

    @property
    def value(self) -> float:
        """What the metric would be of all persons that there are."""
        if self.metric != "average_precision":
            return self.truth * (100 if metric_of(self.metric).percent else 1)
        scores, labels, _ = self.drawn(np.random.default_rng(1), max(1, _MANY // (self.bearers + self.others)))
        return metric_of(self.metric).value(scores, labels, [str(label) for label in range(labels.shape[1])])

    def __str__(self) -> str:
        sides = f"{self.bearers} + {self.others}" + (f", {self.labels} labels" if self.labels > 1 else "")
        return (
            f"{self.metric}, {sides}, {self.images:g} images" + ", mixed" * self.mixed + ", skewed" * (self.skew != 1)
        )


SIDES = ((10, 77), (10, 10), (20, 67), (43, 44))
CASES = [
    *(Case("auc", *sides, truth, images) for sides in SIDES for truth in (0.5, 0.7, 0.9) for images in (1, 3)),
    *(Case("auc", 10, 77, truth, images, 6) for truth in (0.5, 0.7, 0.9) for images in (1, 3)),
    *(Case("auc", 20, 67, truth, 3, 1, 1, True) for truth in (0.7, 0.9)),
    *(Case("top1", half, half, truth, images) for half in (10, 43) for truth in (0.5, 0.7, 0.9) for images in (1, 3)),
    *(Case("balanced_accuracy", 10, 77, truth, images) for truth in (0.5, 0.7, 0.9) for images in (1, 3)),
    *(Case("average_precision", *sides, truth, images) for sides in SIDES for truth in (0.7, 0.9) for images in (1, 3)),
    *(Case("average_precision", 10, 77, truth, 1, 6) for truth in (0.7, 0.9)),
]  # fmt: skip


BEYOND = [Case("auc", 10, 77, truth, 1, 1, skew) for truth in (0.7, 0.9) for skew in (0.5, 2)]  # no goal: few are so


def measured(case: Case, times: int, seed: int = 0) -> tuple[float, float]:
    """How often the interval covers, and its mean length over the ideal one; NaN where none is given."""
    rng, options = np.random.default_rng(seed), _options(case.metric)
    ends, values = [], []
    for _ in range(times):
        scores, labels, persons = case.drawn(rng)
        classes = [str(label) for label in range(scores.shape[1])]
        found = judge(scores, labels, classes, options, subjects=persons)
        values.append(metric_of(case.metric).value(scores, labels, classes))
        ends.append([found.get(f"{case.metric}_{end}", np.nan) for end in ("low", "high")])
    low, high = np.array(ends).T
    ideal = np.subtract(*np.quantile(values, [0.975, 0.025]))
    truth = case.value
    return float(((low <= truth) & (truth <= high)).mean()), float((high - low).mean() / ideal)


def _options(metric: str) -> dict:
    return {"metrics": [metric], "intervals": SAMPLES, "smallest_group": 1, "small_groups": "withhold"}


def run(threads: int, repeats: int, rows: int | None = None) -> None:
    """Print coverage and length of each case, each of `rows` simulated test splits (2,000)."""
    times = rows or 2000
    title(f"95 % intervals of test records: {times:,} simulated splits a case, {SAMPLES} bootstrap samples")
    cases = [*CASES, *BEYOND]
    with ProcessPoolExecutor(threads) as pool:
        found = list(pool.map(measured, cases, [times] * len(cases)))
    table(
        ("persons with and without a label", "truth", "coverage %", "length / ideal"),
        [
            (str(case), f"{case.truth:g}", f"{100 * coverage:.1f}", f"{length:.2f}")
            for case, (coverage, length) in zip(cases, found, strict=True)
        ],
    )
    least, most = min(own for own, _ in found[: len(CASES)]), max(own for _, own in found[: len(CASES)])
    print(f"goal: coverage of at least {COVERAGE:.0%}: {100 * least:.1f} %: {verdict(least >= COVERAGE)}")
    print(f"goal: at most {LENGTH} times the ideal length: {most:.2f}: {verdict(most <= LENGTH)}")
