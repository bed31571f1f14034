"""Bandwidths and local sensitivities of anon_smoothing, both computed from the private points.

None of this is a public constant: each number depends on the records around a point, which is one reason why the
noise that is scaled by it proves nothing (instance_smoothing.py).
"""

import math
from dataclasses import dataclass

import torch

from dpstudy.core.errors import StudyError
from dpstudy.models.kernel_density import NOWHERE, Points, blocks

READINGS = ("density", "share")
_LARGEST_LOG = 600.0  # e^600: beyond it float64 overflows
_LARGEST = 1e30  # float32 holds a few times this


@dataclass(frozen=True)
class Bandwidths:
    """The bandwidths of the points' kernels (Proposition 2).

    Attributes:
        base: h.
        extra: c of h' = h c/N_r(x), with N_r(x) = lambda/(mean distance to the nearest neighbours), so that N_r is 1
            at the threshold.
        neighbours: k.
        percentile: of the mean distances, which is lambda: points beyond it are in a sparse region.
    """

    base: float
    extra: float
    neighbours: int
    percentile: float

    def variances(self, points: torch.Tensor) -> torch.Tensor:
        """(n,) variances of kernels per dimension: h^2, and in sparse regions h^2 + h'^2."""
        distances = neighbour_distances(points, self.neighbours)
        threshold = _percentile(distances, self.percentile)
        wider = (self.base * self.extra * distances / threshold) ** 2 if threshold > 0 else torch.zeros_like(distances)
        return self.base**2 + torch.where(distances > threshold, wider, 0.0)


def _percentile(values: torch.Tensor, percentile: float) -> torch.Tensor:
    """The percentile of the values, by nearest rank; torch.quantile refuses more than 16 million of them."""
    rank = max(1, math.ceil(len(values) * percentile / 100))
    return values.kthvalue(rank).values


def neighbour_distances(points: torch.Tensor, neighbours: int) -> torch.Tensor:
    """(n,) mean Euclidean distance of each of (n, p) points to its nearest neighbours.

    Args:
        neighbours: k; fewer where there are fewer points.
    """
    known = Points(points, points.new_ones(len(points)))
    count = min(neighbours, len(points) - 1)
    distances = points.new_zeros(len(points))
    if not count:
        return distances
    for part in blocks(len(points), len(points)):
        squares = known.squared_distances(points[part])
        squares[torch.arange(len(squares)), torch.arange(part.start, part.stop)] = math.inf
        distances[part] = squares.topk(count, dim=1, largest=False).values.sqrt().mean(1)
    return distances


def local_sensitivity(points: torch.Tensor, variances: torch.Tensor, reading: str) -> torch.Tensor:
    """(n,) float64 local sensitivities s_i of Proposition 1: |p(x_i) - p_-i(x_i)| over all points, as a length.

    Args:
        points: (n, p).
        variances: (n,) of their kernels.
        reading: "density", literally: the number, whose unit is one over a length to the power p, is taken for a
            length; "share": as a share of the density p(x_i), times the point's own bandwidth.
    """
    known, n = Points(points, variances), len(points)
    sensitivities = torch.empty(n, dtype=torch.float64, device=points.device)
    for part in blocks(n, n):
        peaks = known.log_peaks[part]
        ratios = known.log_kernels(points[part]) - peaks[:, None]
        ratios[torch.arange(len(ratios)), torch.arange(part.start, part.stop)] = NOWHERE
        largest = ratios.max(1).values
        total = torch.exp(ratios - largest[:, None]).sum(1, dtype=torch.float64)  # in float64 a sum of ones is exact
        others = torch.exp((largest.double() + torch.log(total / max(1, n - 1))).clamp_max(_LARGEST_LOG))
        if n == 1:
            others = torch.zeros_like(others)
        if reading == "density":
            sensitivities[part] = (1 - others).abs() * torch.exp(peaks.double() - math.log(n))
        else:
            sensitivities[part] = (1 - others).abs() / (1 + (n - 1) * others) * variances[part].double().sqrt()
    return sensitivities


def deviations(points: torch.Tensor, variances: torch.Tensor, reading: str, sigma: float) -> torch.Tensor:
    """(n,) float32 standard deviations s_i sigma of the points' noise, the same in each dimension.

    Raises:
        StudyError: one is too large a number.
    """
    stds = local_sensitivity(points, variances, reading) * sigma
    if not (stds < _LARGEST).all():
        raise StudyError(
            "instance_smoothing: a point's local sensitivity, a density, has more than 30 digits at this bandwidth; "
            "raise bandwidth, or set sensitivity: share"
        )
    return stds.to(points.dtype)


def instance_noise(standard: torch.Tensor, deviations: torch.Tensor) -> torch.Tensor:
    """(n, p) the noise N_i of points, from (n, p) standard normal draws and (n,) or (1,) standard deviations."""
    return standard * deviations[:, None]
