"""Brier score, from 0 to 1: half the mean squared distance between probabilities and one-hot labels.

With several labels per record it is the mean over labels of (p - y)^2 too, which is the same for two classes. Scores
are taken for log odds, as by the expected calibration error.
"""

import numpy as np

from dpstudy.evaluation import weighted
from dpstudy.evaluation.metric import Metric
from dpstudy.models.probabilities import probabilities


def _score(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    p = probabilities(scores, several=labels.ndim == 2)
    if labels.ndim == 2:
        return weighted.mean(((p - (labels != 0)) ** 2).mean(1), weights)
    return weighted.mean(((p - np.eye(p.shape[1])[labels]) ** 2).sum(1) / 2, weights)


METRIC = Metric(order=9, label="Brier score", percent=False, lower_is_better=True, records=_score, probabilities=True)
