"""Top-1 accuracy on training records, in percent, for public research data only.

`dpstudy.evaluation.on_training` measures it.
"""

from dpstudy.evaluation.metric import Metric

METRIC = Metric(
    order=6,
    label="training top-1 accuracy (%)",
    percent=True,
    on_training=True,
    chance=lambda classes: 100 / classes,
)
