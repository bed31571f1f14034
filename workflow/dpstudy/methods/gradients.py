"""Clipped gradient sums of a linear head, without a per-example gradient.

The gradient of record i is the outer product of its residual r_i (m values) and x_i (or (x_i, 1) with a learned bias),
so its norm is |r_i| |x_i| (or |r_i| sqrt(1 + |x_i|^2)): a pass is two matrix products (tramer2021 section 2;
mehta2023 Algorithm 1).
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from dpstudy.methods.bounds import LOOKED_AT, due, hold
from dpstudy.methods.records import Block, Records
from dpstudy.models.linear import LinearModel

LOSSES = ("softmax", "sigmoid")
CLIPPINGS = ("norm", "automatic")
_AUTOMATIC = 0.01  # gamma of AUTO-S, in the units of a gradient
_SHORTEST = 1e-18  # float32 loses the squares of shorter residuals: a length is never taken to be less


@dataclass(frozen=True)
class Head:
    """What a linear head computes, apart from its weights.

    Attributes:
        loss: "softmax", or "sigmoid" (mean over classes).
        bias: "learned" (the last column of the weights), or a fixed number.
        clipping_norm: C, the bound on a record's gradient; infinite where nothing is clipped.
        clipping: "norm": g min(1, C/|g|); "automatic": g C/(|g| + 0.01), below C too (Bu et al. 2022, AUTO-S).
    """

    loss: str
    bias: str | float
    clipping_norm: float
    clipping: str = "norm"

    @property
    def learned(self) -> bool:
        """Whether the bias is the last column of the weights."""
        return self.bias == "learned"

    def start(self, records: Records) -> torch.Tensor:
        """Zero weights, (m, d) or (m, d + 1)."""
        return torch.zeros(records.classes, records.dim + int(self.learned), device=records.device)

    def model(self, weights: torch.Tensor, method: str, center=None, scale=None, unit: bool = False) -> LinearModel:
        """The classifier with (m, width) weights, behind a released normalisation of (d,) center and scale."""
        values = weights.detach().cpu().numpy().copy()
        if self.learned:
            values, bias = values[:, :-1], values[:, -1]
        else:
            bias = np.full(len(values), self.bias, np.float32)
        return LinearModel(values, bias.astype(np.float32), center, scale, {"method": method}, unit)


def residuals(block: Block, weights: torch.Tensor, head: Head) -> torch.Tensor:
    """(m, rows) derivatives of each record's loss by its scores, class by class so that both matrix products of a
    pass read x row by row."""
    dim = block.features.shape[1]
    if head.learned:
        scores = torch.addmm(weights[:, dim:], weights[:, :dim], block.features.T)
    else:
        scores = weights @ block.features.T
        scores += float(head.bias)
    scores = torch.softmax(scores, 0) if head.loss == "softmax" else torch.sigmoid_(scores)
    if block.labels.ndim == 1:
        scores.scatter_add_(0, block.labels[None, :], scores.new_full((1, len(block.labels)), -1.0))
    else:
        scores -= block.labels.T
    return scores if head.loss == "softmax" else scores.div_(len(scores))


def clipped_sum(records: Records, weights: torch.Tensor, head: Head, index: torch.Tensor | None = None) -> torch.Tensor:
    """The private sum over records (those of `index`, or all) of gradients clipped to the head's norm.

    Returns:
        The shape of `weights`, float32. A record with a broken norm, or whose scores overflow, contributes zero;
        every other one at most C.

    Raises:
        RuntimeError: some that were measured again contribute more (bounds.py).
    """
    total = torch.zeros_like(weights)
    dim = records.dim
    for block in records.blocks(index=index):
        residual = residuals(block, weights, head)
        # over rows of memory: ten times faster than vector_norm(residual, dim=0), which goes down columns
        lengths = residual.square().sum(0).sqrt_().clamp_min_(_SHORTEST)
        factors = _factors(lengths, block.norms, head)
        # NaN where weights are so large that a record's scores overflow, or from 0/0: the record contributes zero
        residual.mul_(factors).nan_to_num_(0.0)
        _hold(residual, block, head)
        total[:, :dim].addmm_(residual, block.features)
        if head.learned:
            total[:, dim] += residual.sum(1)
    return total


def _hold(residual: torch.Tensor, block: Block, head: Head) -> None:
    """Measure some gradients, each the outer product of its residual and its features (and 1, of the bias)."""
    if math.isfinite(head.clipping_norm) and due(len(block.features)):
        some, steep = block.features[:LOOKED_AT].double(), residual[:, :LOOKED_AT].double()
        size = (some.square().sum(1) + (1 if head.learned else 0)).sqrt()
        hold("clipped gradients", steep.square().sum(0).sqrt() * size, head.clipping_norm)


def _factors(lengths: torch.Tensor, norms: torch.Tensor, head: Head) -> torch.Tensor:
    """(rows,) factors that bound gradients of norm lengths x sqrt(norms^2 [+ 1]); 0 for a record with a broken norm."""
    if math.isinf(head.clipping_norm):
        return torch.where(torch.isnan(norms), 0.0, 1.0)
    size = torch.sqrt(norms**2 + 1) if head.learned else norms
    if head.clipping == "automatic":
        factors = head.clipping_norm / (lengths * size + _AUTOMATIC)
    else:
        factors = (head.clipping_norm / (lengths * size)).clamp_max_(1.0)
    return factors.nan_to_num_(0.0)
