"""Mean over classes of the sensitivity at a specificity of at least 90 %, in percent.

It is the largest share of those who bear a label whose scores are above a threshold that at most 10 % of the others
reach.
"""

from dpstudy.evaluation import weighted
from dpstudy.evaluation.metric import Metric

METRIC = Metric(
    order=7,
    label="sensitivity at 90 % specificity (%)",
    percent=True,
    area=lambda scores, member, weights: 100 * weighted.sensitivity(scores, member, weights, 0.9),
    chance=lambda classes: 10.0,
)
