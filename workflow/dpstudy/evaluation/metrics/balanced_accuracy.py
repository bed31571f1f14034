"""Mean over the classes that occur of the percent of their records that are classified rightly."""

import numpy as np

from dpstudy.evaluation import weighted
from dpstudy.evaluation.metric import Metric, mean_of_defined
from dpstudy.evaluation.ranks import ranks


def _balanced(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    right = ranks(scores, labels) < 1
    parts = [labels == label for label in np.unique(labels)]
    return 100 * mean_of_defined([weighted.mean(right[part], weights[:, part]) for part in parts])


METRIC = Metric(order=3, label="balanced accuracy (%)", percent=True, records=_balanced)
