"""Percent of training records whose class has the highest score: what a paper may show of public research data, and
nobody of their own (`dpstudy.evaluation.on_training` measures it)."""

from dpstudy.evaluation.metric import Metric

METRIC = Metric(
    order=6,
    label="training top-1 accuracy (%)",
    percent=True,
    on_training=True,
    chance=lambda classes: 100 / classes,
)
