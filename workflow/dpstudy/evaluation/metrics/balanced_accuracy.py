"""Mean over the classes that occur of the percent of their records that are classified rightly."""

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
