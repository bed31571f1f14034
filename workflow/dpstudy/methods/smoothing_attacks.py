"""Replace-one attacks on instance-level smoothing, which tell whether a record or another one is among the points.

The attacker knows all other records, the projection (fixed and taken for public here, though it was trained on private
records: what it tells comes on top), and both candidates. It sees the published point of the target's place, which is
drawn by the method's own functions. Data sets are a random part of the study's records, or copies of one of them.

A claim of (epsilon, delta) for adding or removing a record implies (2 epsilon, (1 + e^epsilon) delta) for replacing
one: bounds are taken at that delta, which is valid at a smaller one too.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch

from dpstudy.core.errors import StudyError
from dpstudy.methods.local_sensitivity import (
    READINGS,
    Bandwidths,
    deviations,
    instance_noise,
    neighbour_distances,
)
from dpstudy.privacy.audit import ELSEWHERE, distinguished
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

_RECORDS, _COPIES = 2000, 100
_CONFIDENCE = 0.999  # that no bound of a cell's own reading is too high
_ROWS = 20_000  # runs drawn at once
_ROUNDING = 1e-6  # of a point's norm: noise below it does not change a float32
_WORDS = {"density": "literally", "share": "as a share of the density"}


def attacks(
    points: torch.Tensor,
    bandwidths: Bandwidths,
    sigma: float,
    claim: Budget,
    reading: str,
    runs: int,
    source: NoiseSource,
) -> list[dict]:
    """Entries of audit.json: replace-one attacks on a typical, an outlying and a copied record, under both readings.

    Args:
        points: (n, p) projected private records.
        sigma: the noise multiplier of the claim.
        claim: its epsilon and delta.
        reading: what the cell publishes under; entries of the other begin with `audit.ELSEWHERE`.
        runs: with and without the target, each; a fifth as many more fix the threshold.
        source: of the attacks' noise, apart from that of the model.
    """
    chosen = source.sampling("records").permutation(len(points))[:_RECORDS]
    points = points[torch.from_numpy(np.sort(chosen)).to(points.device)]
    ranked = neighbour_distances(points, bandwidths.neighbours).argsort()
    typical, outlying = int(ranked[len(ranked) // 2]), int(ranked[-1])
    targets = {
        "a typical record": (typical, 0),
        "the most outlying record": (outlying, 0),
        f"a record with {_COPIES - 1} copies, and nothing else": (typical, _COPIES),
    }
    steps = iter(range(1 << 30))
    delta = min(0.5, (1 + math.exp(claim.target)) * claim.delta)
    confidence = 1 - (1 - _CONFIDENCE) / len(targets)  # of each, so that all hold together with _CONFIDENCE
    audits = []
    for other in sorted(READINGS, key=lambda one: one != reading):
        for name, (target, copies) in targets.items():
            try:
                worlds = [
                    (data[0], deviations(data, bandwidths.variances(data), other, sigma)[0])
                    for data in _neighbours(points, target, copies)
                ]
            except StudyError:  # too large a number for a float: nothing to attack
                if other == reading:
                    raise
                continue
            held_out = _in_both(worlds, max(1, runs // 5), source, steps)
            tested = _in_both(worlds, runs, source, steps)
            statistic = f"likelihood ratio of the point of {name} at a fixed W; sensitivity read {_WORDS[other]}"
            audits.append(
                {
                    "bound": "clopper-pearson",
                    "adjacency": "replace-one",
                    "statistic": ("" if other == reading else ELSEWHERE)
                    + statistic
                    + ("; it is published without any noise" if float(worlds[0][1]) == 0 else ""),
                    "runs": runs,
                    "confidence": confidence,
                    "epsilon_lower": distinguished(held_out, tested, delta, confidence),
                }
            )
    return audits


def _neighbours(points: torch.Tensor, target: int, copies: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two data sets: the target is the first row of one, and the record farthest from it the first row of the other.

    The others are all records but these two, or, where `copies` are asked for, as many copies of the target less one.
    """
    other = int(torch.linalg.vector_norm(points - points[target], dim=1).argmax())
    if copies:
        rest = points[target].repeat(copies - 1, 1)
    else:
        rest = points[[row for row in range(len(points)) if row not in (target, other)]]
    first, second = (torch.cat([points[[row]], rest]) for row in (target, other))
    return first, second


def _in_both(worlds, runs: int, source: NoiseSource, steps: Iterator[int]) -> tuple[np.ndarray, np.ndarray]:
    """The log likelihood ratios of points published from the first data set, and of as many from the second."""
    first, second = (_likelihood_ratios(world, worlds, runs, source, steps) for world in worlds)
    return first, second


def _likelihood_ratios(world, worlds, runs: int, source: NoiseSource, steps: Iterator[int]) -> np.ndarray:
    """(runs,) log likelihood ratios, the first data set's over the second's, of points published from `world`.

    A world is the target's (p,) point and the standard deviation of its noise.
    """
    point, deviation = world
    ratios = []
    for start in range(0, runs, _ROWS):
        size = min(_ROWS, runs - start)
        standard = source.gaussian("attack", (size, len(point)), 1.0, next(steps))
        published = point + instance_noise(torch.from_numpy(standard).to(point), deviation[None])
        first, second = (_log_likelihood(published, *candidate) for candidate in worlds)
        ratios.append((first - second).cpu().numpy())
    return np.concatenate(ratios)


def _log_likelihood(published: torch.Tensor, point: torch.Tensor, deviation: torch.Tensor) -> torch.Tensor:
    least = _ROUNDING * max(1e-6, float(torch.linalg.vector_norm(point)))
    std = max(float(deviation), least)
    squares = ((published - point).double() / std).square().sum(1)
    return -0.5 * squares - len(point) * float(np.log(std))
