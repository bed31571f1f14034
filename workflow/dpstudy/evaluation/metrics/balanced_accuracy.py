"""Balanced accuracy: the mean recall over the classes that occur, in percent."""

from dpstudy.evaluation.metric import Metric
from dpstudy.evaluation.ranks import among

METRIC = Metric(
    order=3,
    label="balanced accuracy (%)",
    percent=True,
    right=among(1),
    by_class=True,
    chance=lambda classes: 100 / classes,
)
