"""Clipped gradient sums of a linear head, without a per-example gradient.

The gradient of record i is the outer product of its residual r_i (m values) and x_i (or (x_i, 1) with a learned bias),
so its norm is |r_i| |x_i| (or |r_i| sqrt(1 + |x_i|^2)): a pass is two matrix products (tramer2021 section 2;
mehta2023 Algorithm 1). Products of blocks are float32, their sum is float64: with one record more all blocks are cut
elsewhere, and what a float32 sum over a million records rounds off would then differ by more than the record does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpstudy.arrays import Array, place_of, scores_of, sigmoid, softmax, subtract_targets, to_numpy
from dpstudy.methods.bounds import LOOKED_AT, due, hold
from dpstudy.methods.records import ROUNDED, Block, Records
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

    def start(self, records: Records) -> Array:
        """Zero weights, (m, d) or (m, d + 1)."""
        return records.place.zeros(records.classes, records.dim + int(self.learned))

    def model(self, weights: Array, method: str, center=None, scale=None, unit: bool = False) -> LinearModel:
        """The classifier with (m, width) weights, behind a released normalisation of (d,) center and scale."""
        values = to_numpy(weights).copy()
        if self.learned:
            values, bias = values[:, :-1], values[:, -1]
        else:
            bias = np.full(len(values), self.bias, np.float32)
        return LinearModel(values, bias.astype(np.float32), center, scale, {"method": method}, unit)


def residuals(block: Block, weights: Array, head: Head) -> Array:
    """(m, rows) derivatives of each record's loss by its scores, class by class so that both matrix products of a
    pass read x row by row."""
    dim = block.features.shape[1]
    scores = scores_of(weights[:, :dim], block.features)
    scores += weights[:, dim:] if head.learned else float(head.bias)
    scores = softmax(scores) if head.loss == "softmax" else sigmoid(scores)
    subtract_targets(scores, block.labels)
    if head.loss == "sigmoid":
        scores /= len(scores)
    return scores


def clipped_sum(records: Records, weights: Array, head: Head, index: Array | None = None) -> Array:
    """The private sum over records (those of `index`, or all) of gradients clipped to the head's norm.

    Returns:
        The shape of `weights`, float32. A record with a broken norm, or whose scores overflow, contributes zero;
        every other one at most C.

    Raises:
        RuntimeError: some that were measured again contribute more (bounds.py).
    """
    total, dim = records.place.zeros(*weights.shape, dtype="float64"), records.dim
    for block in records.blocks(index=index):
        with np.errstate(all="ignore"):  # of a record whose scores overflow, or from 0/0: it contributes zero
            residual = residuals(block, weights, head)
            # over rows of memory: ten times faster than norms of columns
            lengths = ((residual * residual).sum(0) ** 0.5).clip(_SHORTEST, None)
            residual *= _factors(lengths, block.norms, head)
        residual[residual != residual] = 0.0
        _hold(residual, block, head)
        total[:, :dim] += residual @ block.features
        if head.learned:
            total[:, dim] += residual.sum(1)
    return records.place.array(total, "float32")


def _hold(residual: Array, block: Block, head: Head) -> None:
    """Measure some gradients, each the outer product of its residual and its features (and 1, of the bias)."""
    if math.isfinite(head.clipping_norm) and due(len(block.features)):
        wide = place_of(residual).array
        some, steep = wide(block.features[:LOOKED_AT], "float64"), wide(residual[:, :LOOKED_AT], "float64")
        size = ((some**2).sum(1) + (1 if head.learned else 0)) ** 0.5
        hold("clipped gradients", (steep**2).sum(0) ** 0.5 * size, head.clipping_norm)


def _factors(lengths: Array, norms: Array, head: Head) -> Array:
    """(rows,) factors that bound gradients of norm lengths x sqrt(norms^2 [+ 1]); 0 for a record with a broken norm."""
    xp = place_of(norms).xp
    if math.isinf(head.clipping_norm):
        return xp.where(xp.isnan(norms), 0.0, 1.0)
    size = (norms**2 + 1) ** 0.5 if head.learned else norms
    bound = ROUNDED * head.clipping_norm
    if head.clipping == "automatic":
        factors = bound / (lengths * size + _AUTOMATIC)
    else:
        factors = (bound / (lengths * size)).clip(None, 1.0)
    return xp.where(xp.isnan(factors), 0.0, factors)
