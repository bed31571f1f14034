"""Percent of records whose class is among the five highest scores; of equal scores the first class counts higher."""

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
