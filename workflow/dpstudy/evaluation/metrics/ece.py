"""Expected calibration error, in percent: the gap between probabilities and frequencies over bins of equal width.

Of one label a record, of the largest probability and how often that class is right (Guo et al. 2017, section 2); of
several, of each label's probability and how often records bear it, the mean over labels. Scores are taken for log odds,
as those of a calibrated model are (models/probabilities.py); of another model it says what its scores would be worth as
probabilities.
"""

import numpy as np

from dpstudy.evaluation.metric import Metric
from dpstudy.models.probabilities import probabilities

BINS = 15


def _error(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    p = probabilities(scores, several=labels.ndim == 2)
    if labels.ndim == 2:
        return np.mean([_of(p[:, label], labels[:, label] != 0, weights) for label in range(p.shape[1])], axis=0)
    return _of(p.max(1), p.argmax(1) == labels, weights)


def _of(p: np.ndarray, happened: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(R,) of (n,) probabilities, and whether what they are of happened, under (R, n) weights."""
    bins = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    inside = bins == np.arange(BINS)[:, None]
    gaps = np.abs(weights @ (inside * (p - happened)).T).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return 100 * gaps / weights.sum(1)


METRIC = Metric(
    order=8,
    label="expected calibration error (%)",
    percent=True,
    lower_is_better=True,
    records=_error,
    probabilities=True,
)
