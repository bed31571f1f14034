"""The forecast: the share of a model's gain over guessing that survives privacy, with an interval.

What noise does to a mean goes with the number of records times mu, the Gaussian mechanism's one number for epsilon and
delta. So for each method and kind of task the squared factor by which noise lowers a skill (skill.py) is taken for a
probability whose log odds are linear in log n mu, with a bend, in log n, and in the logarithm of how many classes there
are, or of how rare a finding is. A data set's own ease is what is left over; the interval is that of what points of
a set differ by from what the other sets foretell.

Points of which the best model without noise gains too little over guessing say little of what survives, and are left
out: forecasts are for models that would gain LEAST_GAIN of all that there is to gain.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpstudy.forecast.curves import CLASSES, Point
from dpstudy.forecast.skill import skill_of, value_of
from dpstudy.privacy.gaussian import mu_of

LEVEL, LEAST_GAIN = 0.9, 0.15
_LEAST, _MOST = 0.03, 0.985  # factors beyond are taken to be these: measured ones are means over few draws
_RIDGE, _BEND = 0.1, 2.5
_EASES = (0.02, 0.95)  # of a gain that nobody knows: from next to nothing, where least survives, to this area or share


@dataclass(frozen=True)
class Question:
    """A model to forecast.

    Attributes:
        method, task, classes, prevalence: as of curves.Point.
        n: how many units are learned from.
        signal: see `signal_of`.
        best: the metric without privacy; None where nobody knows it.
    """

    method: str
    task: str
    classes: int
    prevalence: float
    n: int
    signal: float
    best: float | None = None


def signal_of(units: int, epsilon: float, delta: float, records: float = 1.0, most: int = 1) -> float:
    """The signal n mu of `units` that have `records` on average, where noise is calibrated to `most`.

    >>> round(signal_of(1000, 1.0, 1e-5), 1) == round(signal_of(1000, 1.0, 1e-5, 3.0, 3), 1)
    True
    """
    return units * records / most * mu_of(epsilon, delta)


def question_of(point: Point) -> Question:
    """The question that a point of a learning curve answers."""
    signal = signal_of(point.n, point.epsilon, point.delta)
    return Question(point.method, point.task, point.classes, point.prevalence, point.n, signal, point.best)


class Forecast:
    """The forecast of one method and task, fitted to points of several public data sets.

    Args:
        points: of several data sets; those of other methods and tasks are left aside, and those that gain too little.

    Raises:
        ValueError: there are points of fewer than three data sets.
    """

    def __init__(self, method: str, task: str, points: Sequence[Point]):
        usable = [point for point in points if (point.method, point.task) == (method, task) and tells(point)]
        sets = sorted({point.dataset for point in usable})
        if len(sets) < 3:
            raise ValueError(f"{method}, {task}: curves of {len(sets)} data sets are too few")
        self._x = np.array([_features(question_of(point)) for point in usable])
        self._y = np.array([_log_odds(_factor(point)) for point in usable])
        of = np.array([sets.index(point.dataset) for point in usable])
        self._ends = self._x.min(0), self._x.max(0)  # beyond what was measured nothing is extrapolated
        self._weights = _fitted(self._x, self._y)
        self._off = np.concatenate([self._without(of == number) for number in range(len(sets))])

    def _without(self, left: np.ndarray) -> np.ndarray:
        """By how much the log odds of a set's factors are off what the others foretell."""
        return self._y[left] - self._x[left] @ _fitted(self._x[~left], self._y[~left])

    def share(self, question: Question, level: float = LEVEL) -> tuple[float, float, float]:
        """(low, middle, high): the share of the gain that survives, with an interval of coverage `level`.

        Where nobody knows the gain, the interval is of all gains, and the middle that of a gain of a half.
        """
        odds = float(np.clip(_features(question), *self._ends) @ self._weights)
        low, high = np.quantile(self._off, [(1 - level) / 2, (1 + level) / 2])
        factors = [1 / math.sqrt(1 + math.exp(-odds - off)) for off in (min(low, 0.0), 0.0, max(high, 0.0))]
        chance = value_of(0.0, question.task, question.classes)
        most = 100.0 if question.task == CLASSES else 1.0
        unknown = [chance + part * (most - chance) for part in (_EASES[0], 0.5, _EASES[1])]
        bests = unknown if question.best is None else 3 * [question.best]
        shares = [_share(factor, best, question) for factor, best in zip(factors, bests, strict=True)]
        return shares[0], shares[1], shares[2]


def tells(point: Point) -> bool:
    """Whether the best model without noise gains enough over guessing for a share of it to be measurable."""
    most = 100.0 if point.task == CLASSES else 1.0
    return point.best - point.chance >= LEAST_GAIN * most


def _factor(point: Point) -> float:
    skill, best = (skill_of(value, point.task, point.classes) for value in (point.value, point.best))
    return min(_MOST, max(_LEAST, skill / best))


def _share(factor: float, best: float, question: Question) -> float:
    """Of the gain of a model that has `best` without noise."""
    task, classes = question.task, question.classes
    chance = value_of(0.0, task, classes)
    left = value_of(factor * skill_of(best, task, classes), task, classes) - chance
    return min(1.0, max(0.0, left / (best - chance)))


def _features(question: Question) -> np.ndarray:
    signal, rare = math.log10(max(question.signal, 1e-3)), min(question.prevalence, 1 - question.prevalence)
    spread = question.classes if question.task == CLASSES else max(rare * (1 - rare), 1e-4)
    return np.array([1.0, signal, min(signal, _BEND), math.log10(question.n), math.log10(spread)])


def _fitted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Weights of ridge regression; the first column is not drawn to zero."""
    penalty = _RIDGE * np.eye(x.shape[1])
    penalty[0, 0] = 0
    return np.linalg.solve(x.T @ x + penalty, x.T @ y)


def _log_odds(factor: float) -> float:
    return math.log(factor**2 / (1 - factor**2))


def held_out(points: Sequence[Point], level: float = LEVEL) -> tuple[float, float]:
    """(coverage, mean width) of the intervals of each data set, fitted to the others (leave-one-out)."""
    inside, widths = [], []
    known = [point for point in points if tells(point)]
    for left, method, task in sorted({(point.dataset, point.method, point.task) for point in known}):
        forecast = Forecast(method, task, [point for point in known if point.dataset != left])
        for point in known:
            if (point.dataset, point.method, point.task) == (left, method, task):
                low, _, high = forecast.share(question_of(point), level)
                inside.append(low <= point.share <= high)
                widths.append(high - low)
    return float(np.mean(inside)), float(np.mean(widths))
