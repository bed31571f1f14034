"""Classification by kernel density estimates log p_t(x), with Gaussian kernels of individual bandwidths.

Everything is computed in log space and in blocks of queries: no n x n matrix is formed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from dpstudy.core.files import read_tensor_metadata, read_tensors, write_tensors
from dpstudy.models.probabilities import as_calibrated, check_calibration

_BLOCK_VALUES = 1 << 22  # kernel values at once: 16 MB each of a few tensors, which pays in caches
_ROUNDING = 1e-6  # of squared norms: what float32 can tell of a squared distance
NOWHERE = -1e30  # the log density of a class without points


class Points:
    """Reference points, each with a Gaussian kernel.

    Args:
        points: (n, p) float32.
        variances: (n,) of the kernels, per dimension.
    """

    def __init__(self, points: torch.Tensor, variances: torch.Tensor):
        self._center = points.detach().mean(0)  # distances are taken around it, where float32 rounds least
        self._points = points - self._center
        self._squares = (self._points**2).sum(1)
        self._variances = variances
        self.log_peaks = -0.5 * points.shape[1] * torch.log(2 * math.pi * variances)

    def __len__(self) -> int:
        return len(self._points)

    def squared_distances(self, queries: torch.Tensor) -> torch.Tensor:
        """(b, n) squared distances from (b, p) queries; differences below float32's precision are zero."""
        queries = queries - self._center
        sizes = (queries**2).sum(1)[:, None] + self._squares
        squares = sizes - 2 * queries @ self._points.T
        return torch.where(squares < _ROUNDING * sizes, 0.0, squares)

    def log_kernels(self, queries: torch.Tensor) -> torch.Tensor:
        """(b, n) the log kernels log K_i(x - x_i) at (b, p) queries."""
        return self.log_peaks - self.squared_distances(queries) / (2 * self._variances)


def blocks(rows: int, n: int) -> Iterator[slice]:
    """Slices of `rows` queries so small that a block's kernels with n points fit in memory."""
    size = max(1, _BLOCK_VALUES // max(1, n))
    for start in range(0, rows, size):
        yield slice(start, min(rows, start + size))


def members(labels: torch.Tensor, classes: int) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
    """For each label the indices of the points with it and, for several labels per record, of those without it.

    Args:
        labels: (n,) class indices, or (n, m) zeros and ones.
    """
    if labels.ndim == 1:
        return [(torch.nonzero(labels == label).flatten(), None) for label in range(classes)]
    rows = [[torch.nonzero(labels[:, label] == sign).flatten() for sign in (1, 0)] for label in range(classes)]
    return [(ours, others) for ours, others in rows]


def log_mean(logs: torch.Tensor, chosen: torch.Tensor, fewer: torch.Tensor | int = 0) -> torch.Tensor:
    """(b,) the log of the mean of exp(logs) over the columns `chosen`; -1e30 where none is left.

    Args:
        logs: (b, n); `NOWHERE` where a point is left out.
        fewer: how many of `chosen` were left out, for all rows or (b,) for each.
    """
    count = torch.as_tensor(len(chosen) - fewer, device=logs.device, dtype=logs.dtype).expand(len(logs))
    if not len(chosen):
        return torch.full_like(count, NOWHERE)
    total = torch.logsumexp(logs.index_select(1, chosen), 1)
    return torch.where(count > 0, total - torch.log(count.clamp_min(1)), NOWHERE)


@dataclass(frozen=True)
class KernelModel:
    """A kernel density classifier of projected records: score_t = log p_t(W x) - log sum_s p_s(W x).

    That is the log probability of the class where all are equally likely, so that images can be ranked by a class's
    score. With several labels per record it is log p_t(W x) - log p_{not t}(W x).

    Attributes:
        projection: W, (p, d) float32.
        points: (n, p) float32, the records as they are published: projected and noised.
        variances: (n,) float32, of their kernels.
        labels: (n,) int32 class indices, or (n, m) uint8 zeros and ones.
        classes: m.
    """

    projection: np.ndarray
    points: np.ndarray
    variances: np.ndarray
    labels: np.ndarray
    classes: int
    metadata: dict[str, str] = field(default_factory=dict)

    def scores(self, features: np.ndarray) -> np.ndarray:
        """(n, m) float32 scores of (n, d) features."""
        where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        kernels = Points(torch.from_numpy(self.points).to(where), torch.from_numpy(self.variances).to(where))
        groups = members(torch.from_numpy(self.labels).to(where).long(), self.classes)
        projection = torch.from_numpy(self.projection).to(where).T
        all_scores = np.empty((len(features), self.classes), np.float32)
        for part in blocks(len(features), len(kernels)):
            rows = torch.from_numpy(np.array(features[part], np.float32)).to(where)  # a shard's rows cannot be written
            logs = kernels.log_kernels(rows @ projection)
            scores = torch.stack([_score(logs, *group) for group in groups], 1)
            all_scores[part] = (scores if self.labels.ndim == 2 else torch.log_softmax(scores, 1)).cpu().numpy()
        return as_calibrated(all_scores, self.metadata)

    @property
    def inputs(self) -> int:
        """The number d of features."""
        return self.projection.shape[1]

    @property
    def parameters(self) -> int:
        """The number of numbers in the model."""
        return self.projection.size + self.points.size + self.variances.size

    @property
    def finite(self) -> bool:
        """Whether no number is NaN or infinite."""
        return all(np.isfinite(value).all() for value in (self.projection, self.points, self.variances))

    def save(self, path) -> None:
        """Write the model as safetensors."""
        tensors = {name: getattr(self, name) for name in ("projection", "points", "variances", "labels")}
        write_tensors(path, tensors, {"kind": "kernel-density", "classes": str(self.classes)} | self.metadata)

    @classmethod
    def load(cls, path) -> KernelModel:
        """Read a model that `save` wrote."""
        metadata = read_tensor_metadata(path)
        check_calibration(path, metadata, int(metadata["classes"]))
        return cls(**read_tensors(path), classes=int(metadata["classes"]), metadata=metadata)


def _score(logs: torch.Tensor, ours: torch.Tensor, others: torch.Tensor | None) -> torch.Tensor:
    score = log_mean(logs, ours)
    return score if others is None else score - log_mean(logs, others)


def as_stored(labels: Sequence | np.ndarray) -> np.ndarray:
    """Labels in the types that `KernelModel` stores."""
    labels = np.asarray(labels)
    return labels.astype(np.int32) if labels.ndim == 1 else labels.astype(np.uint8)
