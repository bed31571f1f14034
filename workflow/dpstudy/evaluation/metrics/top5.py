"""Top-5 accuracy: percent of records whose class is among the five highest scores; ties go to the earlier class."""

from dpstudy.evaluation.metric import Metric
from dpstudy.evaluation.ranks import among

METRIC = Metric(
    order=2,
    label="top-5 accuracy (%)",
    percent=True,
    right=among(5),
    more_than=5,
    chance=lambda classes: 500 / classes,
)
