"""Clipped gradient sums of a linear head, without forming per-example gradients.

The gradient of record i is the outer product of its residual r_i (m values) and x_i (or (x_i, 1) with a learned bias),
so its norm is |r_i| |x_i| (or |r_i| sqrt(1 + |x_i|^2)): a pass is two matrix products (tramer2021 section 2;
mehta2023 Algorithm 1).

Under secure noise the sum is exact (exact.py). Let 2^e cover every entry of a contribution, b be the bits of features
and r those of residuals: every contribution is a multiple of 2^(e - b - r). Features are multiples of 2^(c - b), 2^c
above the norm of their record, and its clipped residual is rounded towards zero to multiples of 2^(e - r - c); what it
adds to a learned bias, to multiples of 2^(e - b - r) itself. Rounding towards zero lengthens nothing: the clip holds.

Otherwise products of blocks are float32 and their sum float64, which is then rounded to float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpstudy.core.arrays import Array, place_of, scores_of, sigmoid, softmax, subtract_targets, to_numpy
from dpstudy.methods import exact
from dpstudy.methods.bounds import LOOKED_AT, due, hold
from dpstudy.methods.records import Block, Records
from dpstudy.methods.row_map import ROUNDED
from dpstudy.models.linear import LinearModel

LOSSES = ("softmax", "sigmoid")
CLIPPINGS = ("norm", "automatic")
_AUTOMATIC = 0.01  # gamma of AUTO-S, in the units of a gradient
_SHORTEST = 1e-18  # lower bound on the norm of a residual, since float32 loses the squares of smaller ones


@dataclass(frozen=True)
class Head:
    """A linear head without its weights: loss, bias and clipping.

    Attributes:
        loss: "softmax", or "sigmoid" (mean over classes, or their sum).
        bias: "learned" (the last column of the weights), or a fixed number.
        clipping_norm: C, the bound on a record's gradient; infinite where nothing is clipped.
        clipping: "norm": g min(1, C/|g|); "automatic": g C/(|g| + 0.01), below C too (Bu et al. 2022, AUTO-S).
        mean: whether the sigmoid losses of a record are averaged over its classes; else they are summed.
    """

    loss: str
    bias: str | float
    clipping_norm: float
    clipping: str = "norm"
    mean: bool = True

    @property
    def learned(self) -> bool:
        """Whether the bias is the last column of the weights."""
        return self.bias == "learned"

    def start(self, records: Records) -> Array:
        """The initial weights, zeros (m, d), or (m, d + 1) with a learned bias."""
        return records.place.zeros(records.classes, records.dim + int(self.learned))

    def model(self, weights: Array, method: str, center=None, scale=None, unit: bool = False) -> LinearModel:
        """The classifier with (m, width) weights, applied after a released normalisation by (d,) center and scale."""
        values = to_numpy(weights).copy()
        if self.learned:
            values, bias = values[:, :-1], values[:, -1]
        else:
            bias = np.full(len(values), self.bias, np.float32)
        return LinearModel(values, bias.astype(np.float32), center, scale, {"method": method}, unit)


def residuals(block: Block, weights: Array, head: Head) -> Array:
    """(m, rows) derivatives of each record's loss with respect to its scores.

    They are made class by class, so that both matrix products of a pass read x row by row.
    """
    dim = block.features.shape[1]
    scores = scores_of(weights[:, :dim], block.features)
    scores += weights[:, dim:] if head.learned else float(head.bias)
    scores = softmax(scores) if head.loss == "softmax" else sigmoid(scores)
    subtract_targets(scores, block.labels)
    if head.loss == "sigmoid" and head.mean:
        scores /= len(scores)
    return scores


def clipped_sum(records: Records, weights: Array, head: Head, index: Array | None = None) -> Array:
    """The private sum of clipped gradients, over all records or over those of `index`.

    Returns:
        The shape of `weights`, float32; float64 where it is exact. A record with a broken norm, or whose scores
        overflow, contributes zero; every other one at most C.

    Raises:
        RuntimeError: some that were measured again contribute more (bounds.py).
    """
    total, dim = records.place.zeros(*weights.shape, dtype="float64"), records.dim
    one = _Exact(records, weights, head) if records.capacity else _Rounded(weights, head)
    for block in records.blocks(index=index):
        with np.errstate(all="ignore"):  # a record whose scores overflow, or 0/0, contributes zero
            residual, features, bias = one.factors(block)
        _hold(residual, features, head)
        total[:, :dim] += residual @ features
        if bias is not None:
            total[:, dim] += bias.sum(1)
    return records.place.array(total, records.dtype)


@dataclass(frozen=True)
class _Rounded:
    """Contributions to the gradient sum, in float32."""

    weights: Array
    head: Head

    def factors(self, block: Block) -> tuple[Array, Array, Array | None]:
        """(m, rows) clipped residuals, (rows, d) features, and (m, rows) contributions to a learned bias, or None."""
        residual = residuals(block, self.weights, self.head)
        # over rows of memory: ten times faster than norms of columns; added up in float32, hence the margin
        lengths = ((residual * residual).sum(0) ** 0.5).clip(_SHORTEST, None)
        lengths = lengths * (1 + len(residual) * 2.0**-24)
        factors = _factors(lengths, block.norms, self.head)
        residual *= place_of(residual).array(factors if block.weights is None else factors * block.weights, "float32")
        residual[residual != residual] = 0.0
        return residual, block.features, residual if self.head.learned else None


class _Exact:
    """Contributions to the gradient sum, on a grid, in float64: see the module."""

    def __init__(self, records: Records, weights: Array, head: Head):
        self._head, self._buffer = head, records.place.empty(0, records.dim, dtype="float64")
        wide = place_of(weights).array(weights, "float64")
        self._weights, self._bias = exact.on_grid(wide[:, : records.dim]), wide[:, records.dim :]
        most = 2 * exact.cover(head.clipping_norm) if math.isfinite(head.clipping_norm) else exact.cover(records.bound)
        self._residual_grid = most * 2.0 ** -exact.residual_bits(records.capacity or 1)

    def _widened(self, features: Array) -> Array:
        """The features in float64; the next block reuses the memory, which is in cache."""
        if len(self._buffer) < len(features):
            self._buffer = place_of(features).empty(*features.shape, dtype="float64")
        wide = self._buffer[: len(features)]
        wide[:] = features
        return wide

    def factors(self, block: Block) -> tuple[Array, Array, Array | None]:
        """As `_Rounded.factors`."""
        head, x = self._head, self._widened(block.features)
        scores = scores_of(self._weights, x)
        scores += self._bias if head.learned else float(head.bias)
        scores = exact.softmax(scores) if head.loss == "softmax" else exact.sigmoid(scores)
        subtract_targets(scores, block.labels)
        residual, lengths = exact.lengths(scores)
        share = 1 / len(residual) if head.loss == "sigmoid" and head.mean else 1.0
        residual *= exact.BELOW * share * _factors(share * lengths, block.norms, head, exact.BELOW)
        if block.weights is not None:
            residual *= exact.BELOW * block.weights
        residual[residual != residual] = 0.0
        grid = self._residual_grid / exact.covers(block.norms)
        bias = exact.truncated(residual, self._residual_grid * 2.0**-exact.FEATURE_BITS) if head.learned else None
        return exact.truncated(residual, grid), x, bias


def _hold(residual: Array, features: Array, head: Head) -> None:
    """Check the norms of some gradients, each the outer product of residual and features (and 1, of the bias)."""
    if math.isfinite(head.clipping_norm) and due(len(features)):
        wide = place_of(residual).array
        some, steep = wide(features[:LOOKED_AT], "float64"), wide(residual[:, :LOOKED_AT], "float64")
        size = ((some**2).sum(1) + (1 if head.learned else 0)) ** 0.5
        hold("clipped gradients", (steep**2).sum(0) ** 0.5 * size, head.clipping_norm)


def _factors(lengths: Array, norms: Array, head: Head, margin: float = ROUNDED) -> Array:
    """(rows,) clipping factors of gradients of norm lengths x sqrt(norms^2 [+ 1]); 0 for a record with a NaN norm."""
    xp = place_of(norms).xp
    if math.isinf(head.clipping_norm):
        return xp.where(xp.isnan(norms), 0.0, 1.0)
    size = (norms**2 + 1) ** 0.5 if head.learned else norms
    bound = margin * head.clipping_norm
    if head.clipping == "automatic":
        factors = bound / (lengths * size + _AUTOMATIC)
    else:
        factors = (bound / (lengths * size)).clip(None, 1.0)
    return xp.where(xp.isnan(factors), 0.0, factors)
