"""Calibrated probabilities from a model's scores, by public test records, which costs no privacy budget.

About half of them, by a hash of each record's name (or its person's), tell the slope and the offset of each class by
which the softmax of scores (where records may bear several labels, the sigmoid of each) is likeliest; scores are judged
on the others. All of it is post-processing of a model that was released.
"""

import dataclasses
import hashlib
import math
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.methods.labels import one_hot
from dpstudy.methods.operating_points import counted
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.models.operating_points import with_counts
from dpstudy.models.probabilities import calibrated, probabilities
from dpstudy.privacy.noise import NoiseSource

if TYPE_CHECKING:
    from dpstudy.features.shards import FeatureTable

_FEWEST = 10
_RIDGE = 1e-3
_RARE, _FAR = 1e-6, 30.0


def for_calibration(ids: np.ndarray, subjects: np.ndarray | None) -> np.ndarray:
    """(n,) whether each test record is for calibration: half of them by their names, a person's records all together.

    >>> for_calibration(np.array(["a", "b", "c"]), np.array(["p", "p", "p"])).sum() in (0, 3)
    True
    """
    names = ids if subjects is None else subjects
    return np.array([hashlib.sha256(f"dpstudy calibration\0{name}".encode()).digest()[0] < 128 for name in names], bool)


class PubliclyCalibrated:
    """A method wrapped so that its model's scores are calibrated on public test records.

    Args:
        method: the module, or what stands for it.
        test: gives the test split, whose records are public.
        thresholds: the model brings counts, without noise, of which thresholds are read off.
    """

    def __init__(self, method: ModuleType, test: "Callable[[], FeatureTable]", thresholds: bool):
        self.uncalibrated, self._test, self._thresholds = method, test, thresholds
        self._records: FeatureTable | None = None

    def __getattr__(self, name: str):
        """Any other attribute of the method."""
        return getattr(self.uncalibrated, name)

    def plan(self, parameters, problem: Problem) -> Plan:
        """The method's own plan: the calibration adds no release.

        Raises:
            StudyError: as of the method; or there are too few test records, which is said before anything is spent.
        """
        test = self._test()
        self._records = test.take(for_calibration(test.ids, test.subjects))
        if len(self._records) < _FEWEST:
            shortage = f"{len(self._records)} of the test records are for it, and it takes {_FEWEST}"
            raise StudyError(f"calibration: test: {shortage}; give a share of the budget instead, or leave it out")
        return self.uncalibrated.plan(parameters, problem)

    def fit(self, data, parameters, problem: Problem, plan: Plan, source: NoiseSource, **beside) -> Fit:
        """The method's model, with the slope and offsets of the calibration of its scores.

        Raises:
            StudyError: as of the method; or its model cannot be calibrated.
        """
        fitted, test = self.uncalibrated.fit(data, parameters, problem, plan, source, **beside), self._records
        assert test is not None, "it is planned first"
        scores, labels = np.asarray(fitted.model.scores(test.features), np.float64), np.asarray(test.labels)
        y = one_hot(labels, problem.classes, problem.classes).astype(np.float64)
        slope, offsets = likeliest(scores, y, not problem.exclusive)
        model = calibrated(fitted.model, slope, offsets, np.clip(y.mean(0), _RARE, 1 - _RARE), 0.0)
        if self._thresholds:
            any_labels = dataclasses.replace(problem, positives=problem.classes, several=not problem.exclusive)
            counts = counted(slope * scores + offsets, labels, np.ones(len(labels)), any_labels)
            model = with_counts(model, counts, 0.0)
        return dataclasses.replace(fitted, model=model)


def likeliest(scores: np.ndarray, y: np.ndarray, several: bool) -> tuple[float, np.ndarray]:
    """The slope and (m,) offsets of maximum likelihood, with a small penalty on the offsets.

    Args:
        scores: (n, m).
        y: (n, m) zeros and ones.
        several: each class is a question of its own.
    """
    from scipy.optimize import minimize

    size = float(np.std(scores)) or 1.0
    known = scores / size

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        slope, offsets = np.exp(values[0]), values[1:]
        logits = np.clip(slope * known + offsets, -_FAR, _FAR)
        p = probabilities(logits, several)
        losses = -(y * np.log(p) + (1 - y) * np.log1p(-p)) if several else -y * np.log(np.maximum(p, _RARE))
        wrong = (p - y) / len(y)
        gradient = np.concatenate([[slope * (wrong * known).sum()], wrong.sum(0) + 2 * _RIDGE * offsets])
        return float(losses.sum() / len(y) + _RIDGE * offsets @ offsets), gradient

    ends = [(-_FAR, math.log(_FAR)), *((-_FAR, _FAR) for _ in range(scores.shape[1]))]
    optimum = minimize(loss, np.zeros(len(ends)), jac=True, method="L-BFGS-B", bounds=ends)
    return float(np.exp(optimum.x[0]) / size), optimum.x[1:]
