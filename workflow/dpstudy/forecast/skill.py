"""Skill: the separation of a model's scores, in standard deviations of the scores.

Of a finding it is Phi^-1 of the area under the ROC curve. Of m classes it is by how much the mean of the true class's
score is above m - 1 others, all with standard deviation 1, for that accuracy (tables/ceiling.py has the integral).
Noise lowers a skill by a factor, whatever the skill is: of a sum of n records' scores and noise, the correlation of the
direction that was learned with the one that would be learned without noise.
"""

import functools
import math

import numpy as np
from scipy.special import ndtr, ndtri

from dpstudy.forecast.curves import CLASSES

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
_MOST = 10.0


def value_of(skill: float, task: str, classes: int) -> float:
    """The metric at a skill: top-1 accuracy in percent for classes, else AUC.

    >>> value_of(0.0, "classes", 4), value_of(0.0, "one", 2)
    (25.0, 0.5)
    """
    return float(np.interp(skill, *_table(classes))) if task == CLASSES else float(ndtr(skill))


def skill_of(value: float, task: str, classes: int) -> float:
    """The inverse of `value_of`; 0 at or below chance."""
    if task != CLASSES:
        return float(ndtri(min(max(value, 0.5), 1 - 1e-9)))
    skills, values = _table(classes)
    return float(np.interp(value, values, skills))


@functools.cache
def _table(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Skills, and the accuracies in percent that go with them."""
    skills = np.linspace(0, _MOST, 1001)
    above = ndtr(_NODES[None] + skills[:, None]) ** (classes - 1)
    values = 100 * above @ _WEIGHTS / math.sqrt(2 * math.pi)
    return skills, np.maximum.accumulate(values - values[0]) + 100 / classes
