"""Sensitivity and specificity at every threshold: noisy counts that are released with a calibration.

A record adds one to one bin for each class: of those with the class or of those without it, by the log odds that the
calibrated model gives it. Over m classes its contribution has the norm sqrt(m), which is the sensitivity of all counts
together; a unit of r records moves them by r times that, or by that where its records are averaged (averaging.py).
Everything that is read off the counts afterwards (a threshold for any specificity, what is found there) is
post-processing. On training records a model may look better than it is, as calibrated.py says.
"""

from __future__ import annotations

import math

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.methods.exact import softmax, truncated
from dpstudy.methods.labels import one_hot
from dpstudy.methods.problem import Problem
from dpstudy.models.operating_points import EDGES
from dpstudy.privacy.events import Event
from dpstudy.privacy.gaussian import mu_of

NAME = "operating_points"
MOST_CLASSES = 50
_LITTLE, _MUCH = 0.01, 0.2  # least share of mu^2 for the counts, and the most that `True` gives them
_OFF = 0.02  # noise allowed on the number of records above a middle threshold, as a share of n
_GRID = 2.0**-20  # of weights


def share_of(problem: Problem, asked: bool | float = True) -> float:
    """The share of mu^2 for the counts: as asked for; if that is True, the smallest with which noise hides little.

    It is then _LITTLE at least, and 0 (no counts) where more than _MUCH would be needed.

    >>> from dpstudy.privacy.budget import Budget
    >>> [round(share_of(Problem(n, (2,), 8, Budget("2", 1e-6), 2)), 3) for n in (50_000, 5_000, 1_000)]
    [0.01, 0.048, 0.0]
    """
    if not isinstance(asked, bool) or not asked:
        return float(asked)
    if not problem.noised:
        return _LITTLE
    wide = problem.unit_bound * math.sqrt(problem.classes * len(EDGES) / 2)
    needed = (wide / (_OFF * problem.n * mu_of(problem.budget.target, problem.budget.delta))) ** 2
    return 0.0 if needed > _MUCH else max(_LITTLE, needed)


def event(problem: Problem, mu: float) -> Event:
    """The event of releasing the counts, of Gaussian DP with parameter `mu`.

    Raises:
        StudyError: there are more classes than anybody sets thresholds for.
    """
    if problem.classes > MOST_CLASSES:
        raise StudyError(f"thresholds: are for at most {MOST_CLASSES} classes, and there are {problem.classes}")
    return problem.sum_of(math.sqrt(problem.classes)).event(NAME, 1 / mu)


def counted(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, problem: Problem) -> np.ndarray:
    """(2, m, bins) histograms of the log odds of records without and with each class.

    Args:
        scores: (n, m) calibrated.
        labels, weights: of these records.
    """
    counts = np.zeros((2, problem.classes, len(EDGES) + 1))
    borne = one_hot(labels, problem.classes, problem.positives) != 0
    wide = scores.astype(np.float64)  # each record's bins are a function of it alone, bit for bit (exact.py)
    if problem.exclusive:
        p = np.ascontiguousarray(softmax(np.ascontiguousarray(wide.T)).T)
        with np.errstate(divide="ignore"):
            wide = np.log(p) - np.log1p(-p)
    bins = np.digitize(wide, EDGES)
    parts = truncated(np.asarray(weights, np.float64), _GRID)
    for place in range(problem.classes):
        for with_it in (0, 1):
            mine = borne[:, place] == with_it
            counts[with_it, place] = np.bincount(bins[mine, place], parts[mine], len(EDGES) + 1)
    return counts
