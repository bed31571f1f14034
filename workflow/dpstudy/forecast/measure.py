"""Measuring the learning curves: models trained on subsets of public feature sets, in memory."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpstudy import methods
from dpstudy.config.cells import unfold
from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_reader
from dpstudy.evaluation.metrics import metric_of
from dpstudy.features import shards
from dpstudy.features.shards import FeatureTable
from dpstudy.forecast.curves import CLASSES, OF_SEVERAL, ONE, OURS, SEVERAL, Point, write
from dpstudy.plan import paths

SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 50_000)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
DRAWS, TESTED, FINDINGS = 3, 4000, 8
METHODS = ("least_squares", "feature_covariance", "kernel_mean")  # with their own settings
_SPARSE, _PICKED = 0.15, 0.7  # how likely an image of another class, and one of its own, bears a finding
_log = logging.getLogger("dpstudy")


@dataclass(frozen=True)
class Task:
    """A classification task.

    Attributes:
        kind: one of curves.TASKS.
        classes: how many classes, or findings.
        train, test: labels (n,), or of several (n, m) zeros and ones.
        metric, chance: see curves.Point.
    """

    kind: str
    classes: int
    train: np.ndarray
    test: np.ndarray
    metric: str
    chance: float

    @property
    def prevalence(self) -> float:
        """The mean prevalence of a finding; for classes, one over their number."""
        return 1 / self.classes if self.kind == CLASSES else float(np.mean(self.train != 0))


def tasks(train: np.ndarray, test: np.ndarray, classes: int, random: np.random.Generator) -> Iterator[Task]:
    """The classification tasks of a data set: all classes, a tenth or half of them against the rest, and findings.

    The findings are synthetic, drawn by class.
    """
    yield Task(CLASSES, classes, train, test, "top1", 100 / classes)
    few = max(1, round(0.1 * classes))
    for chosen in (np.arange(few), np.arange(classes // 2)):
        learned, tested = (np.isin(labels, chosen).astype(np.int64) for labels in (train, test))
        yield Task(ONE, 2, learned, tested, "auc", 0.5)
    likely = np.where(random.random((classes, FINDINGS)) < _SPARSE, _PICKED, 0.02)
    likely[np.arange(FINDINGS) % classes, np.arange(FINDINGS)] = _PICKED
    learned, tested = (
        (random.random((len(labels), FINDINGS)) < likely[labels]).astype(np.int64) for labels in (train, test)
    )
    yield Task(SEVERAL, FINDINGS, at_most(learned, 2), at_most(tested, 2), "auc", 0.5)


def at_most(labels: np.ndarray, most: int) -> np.ndarray:
    """(n, m) labels of which each record keeps at most the first `most` positive ones."""
    return labels * (np.cumsum(labels, axis=1) <= most)


def write_curves(config: Mapping, folder: str) -> None:
    """Measure and write the learning curves of a study's feature sets in a folder.

    Args:
        config: the study's, filled in.

    Raises:
        StudyError: features are missing or damaged, or are of somebody's own records.
    """
    points: list[Point] = []
    for name, features in dict.fromkeys((cell.dataset, cell.features) for cell in unfold(dict(config))):
        if own_reader(config["datasets"][name]):
            raise StudyError(f"datasets.{name}: curves are published, and its records are your own")
        lie = [paths.FEATURES.format(dataset=name, features=features, split=split) for split in ("train", "test")]
        where = [Path(folder, one) for one in lie]
        classes = len(shards.read_manifest(str(where[0]))["classes"])
        train, test = (shards.load(str(one)) for one in where)
        points += measured(name, config["features"][features]["extractor"], train, test, classes)
    write(points, OURS)


def measured(name: str, features: str, train: FeatureTable, test: FeatureTable, classes: int) -> Iterator[Point]:
    """The points of a public data set's learning curves."""
    chosen = np.random.default_rng(1).permutation(len(test))[:TESTED]
    held_out, answers = np.asarray(test.features)[chosen], np.asarray(test.labels)[chosen]
    for task in tasks(np.asarray(train.labels), answers, classes, np.random.default_rng(2)):
        sizes = [size for size in SIZES if size <= len(train)]
        for n in [*sizes, *([len(train)] if len(train) > 1.5 * sizes[-1] else [])]:
            yield from _of_size(name, features, np.asarray(train.features), held_out, task, n)


def _of_size(name: str, kind: str, train: np.ndarray, test: np.ndarray, task: Task, n: int) -> Sequence[Point]:
    delta, means = min(1e-5, 0.1 / n), {}
    for method in METHODS:
        for epsilon in (np.inf, *EPSILONS):
            values = [_value(method, train, test, task, n, epsilon, delta, draw) for draw in range(DRAWS)]
            means[method, epsilon] = float(np.mean(values))
    best = max(means[method, np.inf] for method in METHODS)
    _log.info("%s, %s, n = %s: %.4g without noise", name, task.kind, n, best)
    facts = (name, kind, train.shape[1], task.kind, task.classes, task.prevalence, n)
    return [
        Point(*facts, epsilon, delta, method, task.metric, value, task.chance, best, DRAWS)
        for (method, epsilon), value in means.items()
        if epsilon != np.inf
    ]


def _value(
    method: str, train: np.ndarray, test: np.ndarray, task: Task, n: int, epsilon: float, delta: float, draw: int
) -> float:
    rows = np.random.default_rng([3, draw]).permutation(len(train))[:n]
    labels, several = task.train[rows], task.kind == SEVERAL
    options: dict = dict(OF_SEVERAL.get(method, {})) if several else {}
    options |= {"classes": task.classes} | ({"positives": 2} if several else {})
    features = np.ascontiguousarray(train[rows])
    model = methods.fit(method, features, labels, epsilon=epsilon, delta=delta, seed=draw, **options).model
    classes = [str(number) for number in range(task.classes)]
    return metric_of(task.metric).value(model.scores(test), task.test, classes)
