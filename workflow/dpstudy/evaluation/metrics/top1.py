"""Percent of records whose class has the highest score; of equal scores the first class counts higher."""

from dpstudy.evaluation.metric import Metric
from dpstudy.evaluation.ranks import share_within

METRIC = Metric(
    order=1,
    label="top-1 accuracy (%)",
    percent=True,
    records=share_within(1),
    share=True,
    ceiling=True,
    hub="accuracy",
)
