"""Regularised regression without privacy, the baseline for private training of the same head.

The ridge is the one, of a path, with the least loss on a tenth of the records that the path is not trained on; all
records are then trained on with it. Nothing of this is private: no noise, no clip, and a choice that records make.

Steps are Nesterov's, with a restart where they turn against the gradient (O'Donoghue and Candes 2015), preconditioned
by a bound on the loss's Hessian (Boehning 1992), with which a rate of 1 lowers the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpstudy.core.arrays import Array, place_of, to_numpy
from dpstudy.methods.gradients import Head, residuals
from dpstudy.methods.records import Block, Records
from dpstudy.methods.spectral import Preconditioner

HELD_OUT = 0.1  # of the records
RIDGES = tuple(10 ** (-half / 2) for half in range(2, 17))  # 0.1 to 1e-8, of records of norm 1
_STEPS_A_RIDGE = 10  # the training with each ridge starts at the weights of the one before
_SMALLEST = 1e-30


def train(
    records: Records,
    head: Head,
    preconditioner: Preconditioner,
    steps: int,
    monitor: Callable[[int, Array], None] = lambda step, weights: None,
) -> tuple[Array, float]:
    """The trained (m, d) weights, and the ridge that was chosen.

    Args:
        head: whose bias is a number.
        preconditioner: of a bound on the Hessian of the mean loss.
        steps: on all records, after the choice.
        monitor: called after each of these.
    """
    out = np.random.default_rng(0).random(records.rows) < HELD_OUT
    weights, least, chosen = head.start(records), math.inf, RIDGES[0]
    for ridge in RIDGES:
        weights = _descend(records, head, preconditioner.ridged(ridge), ridge, weights, _STEPS_A_RIDGE, out)
        _, loss = _one_pass(records, head, weights, out)
        if not loss < least:
            break
        least, chosen = loss, ridge
    none = np.zeros(records.rows, bool)
    start = head.start(records)
    return _descend(records, head, preconditioner.ridged(chosen), chosen, start, steps, none, monitor), chosen


def curvature(head: Head, classes: int) -> float:
    """c, for which c times the Gram matrix bounds the Hessian of the loss, for each class or for all together."""
    return 0.5 if head.loss == "softmax" else 0.25 / (classes if head.mean else 1)


def _descend(
    records: Records,
    head: Head,
    preconditioner: Preconditioner,
    ridge: float,
    weights: Array,
    steps: int,
    out: np.ndarray,
    monitor: Callable[[int, Array], None] = lambda step, weights: None,
) -> Array:
    ahead, momentum = weights, 1.0
    for step in range(1, steps + 1):
        gradient, _ = _one_pass(records, head, ahead, out)
        moved = ahead - preconditioner(gradient + ridge * ahead)
        if float(((ahead - moved) * (moved - weights)).sum()) > 0:
            momentum = 1.0
        next_momentum = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / next_momentum * (moved - weights)
        weights, momentum = moved, next_momentum
        monitor(step, weights)
    return weights


def _one_pass(records: Records, head: Head, weights: Array, out: np.ndarray) -> tuple[Array, float]:
    """(m, d) gradient of the mean loss over the records that are not left `out`, and the mean loss over those that are.

    The latter is 0 where none are.
    """
    total = records.place.zeros(*weights.shape, dtype="float64")
    start, loss, counted = 0, 0.0, 0.0
    for block in records.blocks():
        residual = residuals(block, weights, head)
        broken = block.norms != block.norms
        residual[:, broken] = 0.0
        residual[residual != residual] = 0.0
        left = out[start : start + residual.shape[1]]
        start += residual.shape[1]
        if left.any():
            loss += _losses(residual, block, head)[left].sum()
        shares = np.ones(len(left)) if block.weights is None else to_numpy(block.weights)
        counted += shares[~left].sum()
        residual = residual * place_of(residual).array(shares * ~left, "float32")
        total += residual @ block.features
    gradient = total / max(1, counted)
    return records.place.array(gradient, "float32"), float(loss) / max(1, int(out.sum()))


def _losses(residual: Array, block: Block, head: Head) -> np.ndarray:
    """(rows,) losses, from their derivatives with respect to scores: 1 minus the probability of a label."""
    away = np.abs(to_numpy(residual).astype(np.float64))
    if head.loss == "softmax":
        away = away[to_numpy(block.labels), np.arange(away.shape[1])][None]
    elif head.mean:
        away *= len(away)
    return -np.log(np.maximum(1 - away, _SMALLEST)).sum(0)
