"""Norms of record gradients and sums of clipped ones, with bounds on their rounding errors on any processor.

A layer's rule holds a record's gradient as tensors, or as the two factors of an outer product: the very numbers that
are normed are clipped and summed, all in float64, v = 2^-53. Whatever the order, a sum of which each term meets r
roundings at most differs from the exact one by gamma_r times the sizes of the terms, gamma_r = r v/(1 - r v) (Higham
2002, section 3.1).

Norm. Squares are added up in blocks, `norm_roundings` on the way of each at most; `squared_lengths` adds as much, so
that it is never below the exact square. Two computations of a norm, in batches of another size or at another place, and
so two contributions made with them, differ by gamma_d of it.

Sum. Where a product of factor and gradient reaches the sum over N contributions of norm C' at most by h roundings, what
is computed differs from the exact sum by gamma_h N C' at most in Euclidean norm, since a sum of vectors is no longer
than its terms together. Hence two sums, with a record and without it, whatever the order and the blocks of each, are
apart by C' (1 + 2 (gamma_h + gamma_d) N) at most, and by C where contributions are clipped to `clipped_for`, C divided
by that. For 50,000 records, 128 at a time, and WRN-16-4 it is C (1 - 2e-7).

What is bounded is what rounding does to norms and sums of gradients as they were computed. A record's own gradient
comes in float32 out of a pass with others, and its last bits may depend on how many they are and on its place among
them; only record by record (one_by_one.py) they do not.
"""

import functools
import logging
import math
from collections.abc import Iterable
from types import ModuleType

import torch

_log = logging.getLogger("dpstudy")
_BLOCK = 1024  # squares are summed in blocks of so many, then the blocks' sums
_AT_ONCE = {"cpu": 1 << 20, "cuda": 1 << 24}  # numbers converted to float64 at a time; on a CPU they stay in cache
_ROUNDINGS = 16  # roundings besides those of additions: of roots, factors, scales and their products
_UNIT = 2.0**-53


def norm_roundings(shapes: Iterable[torch.Size]) -> int:
    """The most roundings that a square meets on its way into the squared norm of a gradient of these shapes.

    Those of a block, twice in an outer product; of the blocks of a row and the rows of a matrix; of all tensors.
    """
    return 2 * _BLOCK + _ROUNDINGS + sum(shape.numel() // _BLOCK + shape[:1].numel() + 1 for shape in shapes)


def squared_lengths(values: torch.Tensor) -> torch.Tensor:
    """(...) float64 squared Euclidean norms of (..., k) values, rounded up, never below the exact ones (see module)."""
    k = values.shape[-1]
    rows = values.reshape(-1, k)
    kernels = _kernels(rows.device) if rows.is_cuda else None
    squares = kernels.squares(rows) if kernels else _squares(rows)
    return squares.view(values.shape[:-1]) * (1 + 2 * norm_roundings([rows[:1].shape]) * _UNIT)


def _squares(rows: torch.Tensor) -> torch.Tensor:
    at_once = _AT_ONCE[rows.device.type]
    squares, size = rows.new_zeros(len(rows), dtype=torch.float64), max(1, at_once // max(1, rows.shape[1]))
    for few_rows, total in zip(rows.split(size), squares.split(size), strict=True):
        for part in few_rows.split(at_once, 1):
            exact = part.double()
            whole = exact.shape[1] - exact.shape[1] % _BLOCK
            for blocks in (exact[:, :whole].unflatten(1, (-1, _BLOCK)), exact[:, None, whole:]):
                total += torch.linalg.vector_norm(blocks, dim=-1).square().sum(-1)
    return squares


def clipping_factors(norms: torch.Tensor, bound: float) -> torch.Tensor:
    """(n,) factors min(1, bound/norm) of (n,) float64 norms, rounded towards zero; 0 where the norm is not finite."""
    margin = 1 - 8 * torch.finfo(norms.dtype).eps
    factors = torch.where(norms > bound, bound / norms * margin, 1.0) if bound < math.inf else torch.ones_like(norms)
    return torch.where(torch.isfinite(norms), factors.nan_to_num(1.0), 0.0)


def weighted_sum(factors: torch.Tensor, each: torch.Tensor) -> torch.Tensor:
    """(...) float64: the sum over records of (n,) float64 factors times (n, ...) gradients."""
    kernels = _kernels(each.device) if each.is_cuda else None
    if kernels:
        return kernels.weighted(factors, each.reshape(len(each), -1)).view(each.shape[1:])
    rows = finite_rows(each, factors).reshape(len(each), -1)
    total = rows.new_empty(rows.shape[1], dtype=factors.dtype)
    columns = max(1, _AT_ONCE[rows.device.type] // len(rows))
    for part, into in zip(rows.split(columns, 1), total.split(columns), strict=True):
        torch.mv(part.to(factors.dtype).T, factors, out=into)
    return total.view(each.shape[1:])


@functools.cache
def _kernels(device: torch.device) -> ModuleType | None:
    """The GPU kernels for norms and sums in one pass; None where Triton, or the compiler that it needs, is missing."""
    try:
        from dpstudy.methods import gpu_sums

        rows = torch.zeros(1, 1, device=device)
        gpu_sums.weighted(gpu_sums.squares(rows), rows)
    except Exception as error:  # an incomplete installation may raise anything
        _log.warning("norms and sums on the GPU are made by torch, slower: Triton fails (%s)", str(error)[:200])
        return None
    return gpu_sums


def finite_rows(values: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """`values` (n, ...) with zeros in the rows whose factor is 0, since 0 x NaN is NaN."""
    dead = factors == 0
    return torch.where(dead.reshape(-1, *[1] * (values.ndim - 1)), 0.0, values) if dead.any() else values


def clipped_for(norm: float, records: int, micro_batch: int, shapes: Iterable[torch.Size], processes: int = 1) -> float:
    """C', the clipping norm for which one contribution moves the computed sum, rounding included, by C at most.

    Args:
        norm: C.
        records: N, the most that a sum has, a public number.
        micro_batch: of how many records sums are taken, which are then added up, and those of all processes.
        shapes: of the gradient's tensors.
    """
    additions = min(micro_batch, records) + math.ceil(records / micro_batch) + processes
    rounded = (additions + _ROUNDINGS + norm_roundings(shapes)) * _UNIT
    return norm / (1 + 2 * records * rounded / (1 - rounded))
