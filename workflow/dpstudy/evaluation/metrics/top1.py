"""Top-1 accuracy: percent of records whose class has the highest score; ties go to the earlier class."""

from dpstudy.evaluation.metric import Metric
from dpstudy.evaluation.ranks import among

METRIC = Metric(
    order=1,
    label="top-1 accuracy (%)",
    percent=True,
    right=among(1),
    chance=lambda classes: 100 / classes,
    ceiling=True,
    hub="accuracy",
)
