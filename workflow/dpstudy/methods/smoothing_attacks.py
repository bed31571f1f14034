"""Attacks on instance-level smoothing: is a record among the points, or another in its place?

The attacker knows all other records, the projection (taken for public here, though it was trained on private records:
what it tells comes on top), and both candidates. It sees the published point of the target's place, which is drawn by
the method's own functions. Data sets are a random part of the study's records: a guarantee must hold on any.
"""

from collections.abc import Iterator

import numpy as np
import torch

from dpstudy.methods.local_sensitivity import (
    READINGS,
    Bandwidths,
    deviations,
    instance_noise,
    neighbour_distances,
)
from dpstudy.privacy.audit import distinguished
from dpstudy.privacy.noise import NoiseSource

_RECORDS, _COPIES = 2000, 100
_CONFIDENCE = 0.999
_ROWS = 20_000  # runs drawn at once
_ROUNDING = 1e-6  # of a point's norm: noise below it does not change a float32
_WORDS = {"density": "literally", "share": "as a share of the density"}


def attacks(
    points: torch.Tensor, bandwidths: Bandwidths, sigma: float, delta: float, runs: int, source: NoiseSource
) -> list[dict]:
    """Entries of audit.json: replace-one attacks on a typical, an outlying and a copied record, under both readings.

    Args:
        points: (n, p) projected private records.
        sigma: the noise multiplier of the claim.
        delta: of the claim.
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
    found = []
    for reading in READINGS:
        for name, (target, copies) in targets.items():
            worlds = [
                (data[0], deviations(data, bandwidths.variances(data), reading, sigma)[0])
                for data in _neighbours(points, target, copies)
            ]
            held_out, tested = (
                tuple(_likelihood_ratios(world, worlds, size, source, steps) for world in worlds)
                for size in (max(1, runs // 5), runs)
            )
            found.append(
                {
                    "bound": "clopper-pearson",
                    "adjacency": "replace-one",
                    "statistic": f"likelihood ratio of the point of {name}; sensitivity read {_WORDS[reading]}"
                    + ("; it is published without any noise" if float(worlds[0][1]) == 0 else ""),
                    "runs": runs,
                    "confidence": _CONFIDENCE,
                    "epsilon_lower": distinguished(held_out, tested, delta, _CONFIDENCE),
                }
            )
    return found


def _neighbours(points: torch.Tensor, target: int, copies: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two data sets, the target in the first row of one, and in its place in the other the record farthest from it.

    The others are all records but these two, or, where `copies` are asked for, as many copies of the target less one.
    """
    other = int(torch.linalg.vector_norm(points - points[target], dim=1).argmax())
    if copies:
        rest = points[target].repeat(copies - 1, 1)
    else:
        rest = points[[row for row in range(len(points)) if row not in (target, other)]]
    return tuple(torch.cat([points[[row]], rest]) for row in (target, other))


def _likelihood_ratios(world, worlds, runs: int, source: NoiseSource, steps: Iterator[int]) -> np.ndarray:
    """(runs,) log likelihood of the first world over that of the second, of points published in `world`.

    A world is the target's (p,) point and the standard deviation of its noise.
    """
    point, deviation = world
    found = []
    for start in range(0, runs, _ROWS):
        size = min(_ROWS, runs - start)
        standard = source.gaussian("attack", (size, len(point)), 1.0, next(steps))
        published = point + instance_noise(torch.from_numpy(standard).to(point), deviation[None])
        first, second = (_log_likelihood(published, *candidate) for candidate in worlds)
        found.append((first - second).cpu().numpy())
    return np.concatenate(found)


def _log_likelihood(published: torch.Tensor, point: torch.Tensor, deviation: torch.Tensor) -> torch.Tensor:
    least = _ROUNDING * max(1e-6, float(torch.linalg.vector_norm(point)))
    deviation = max(float(deviation), least)
    squares = ((published - point).double() / deviation).square().sum(1)
    return -0.5 * squares - len(point) * float(np.log(deviation))
