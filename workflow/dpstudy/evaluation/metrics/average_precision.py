"""Mean over classes of the average precision, a fraction; the classes are those of the AUC."""

import numpy as np

from dpstudy.evaluation import weighted
from dpstudy.evaluation.metric import Metric


def _point(member: np.ndarray, scores: np.ndarray) -> float:
    from sklearn.metrics import average_precision_score

    return average_precision_score(member, scores)


METRIC = Metric(order=5, label="average precision", percent=False, area=weighted.average_precision, point=_point)
