"""A noisy mean of unit-norm records, subtracted before anything else is learnt from them.

A record of norm at most 1 changes the sum by at most 1; noise is added to the sum, which is divided by the public n.
Shrinking the result towards zero by what its noise is expected to contribute (James and Stein 1961, positive part) is
post-processing: where the noise drowns the mean, nothing is subtracted.
"""

import numpy as np

from dpstudy.core.arrays import to_numpy
from dpstudy.methods.problem import Plan, Problem
from dpstudy.methods.records import Records
from dpstudy.privacy.events import Event
from dpstudy.privacy.noise import NoiseSource

MEAN = "mean"


def event(share: float, problem: Problem) -> Event:
    """The event of releasing the mean, with noise of mu^2 = `share`."""
    return problem.sum_of(1.0).event(MEAN, share**-0.5)


def release(records: Records, problem: Problem, plan: Plan, source: NoiseSource) -> np.ndarray:
    """The (d,) float32 released mean of records that are mapped to norm at most 1."""
    total, xp = records.place.zeros(records.dim, dtype="float64"), records.place.xp
    for block in records.blocks():
        total += block.shared().sum(0, dtype=xp.float64)
    summed = to_numpy(total)
    if problem.noised:
        std = plan.noise[MEAN]
        summed = source.released(MEAN, summed, std)
        summed *= max(0.0, 1 - (len(summed) - 2) * std**2 / float(summed @ summed))
    return (summed / problem.n).astype(np.float32)
