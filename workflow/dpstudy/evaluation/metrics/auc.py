"""AUC: the mean over classes of the one-versus-rest area under the ROC curve, a fraction.

Classes that all or no records have are left out of the mean. With two exclusive classes it is the area under the curve
of the difference of the two scores.
"""

import numpy as np

from dpstudy.evaluation import weighted
from dpstudy.evaluation.metric import Metric


def _point(member: np.ndarray, scores: np.ndarray) -> float:
    from sklearn.metrics import roc_auc_score

    return roc_auc_score(member, scores)


def _independent(value: float, bearers: int, others: int) -> float:
    """Hanley and McNeil (1982), with the mean of both sides for each (Newcombe 2006, method 5)."""
    rest = (bearers + others) / 2 - 1
    return bearers * others / (1 + rest * (1 - value) / (2 - value) + rest * value / (1 + value))


METRIC = Metric(
    order=4,
    label="area under the ROC curve",
    percent=False,
    area=weighted.auc,
    independent=_independent,
    point=_point,
    chance=lambda classes: 0.5,
    hub="roc_auc",
)
