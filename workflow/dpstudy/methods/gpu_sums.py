"""Norms and weighted sums in float64 of float32 rows on a GPU, each in one pass over memory (Triton).

With torch's own operations the rows are written again as float64 and read back: five times the traffic. What is added
up, and what bounds its rounding, is as in record_sums.py: a square meets at most BLOCK roundings, and no order of
additions depends on the machine's timing.
"""

import torch
import triton
import triton.language as tl

_BLOCK = 512  # numbers at a time
_SPAN = 16 * _BLOCK  # of a row that one program adds up
_ROWS = 64  # that one program adds up


def squares(rows: torch.Tensor) -> torch.Tensor:
    """(n,) float64 squared norms of (n, k) rows."""
    rows = rows.contiguous()
    count, k = rows.shape
    parts = triton.cdiv(k, _SPAN)
    partial = rows.new_zeros(count, parts, dtype=torch.float64)
    if count and k:
        _square[(count, parts)](rows, partial, k, parts, _SPAN, _BLOCK)
    return partial.sum(1)


def weighted(factors: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """(k,) float64 sum of factor times row, for (n,) float64 factors and (n, k) rows; rows of factor 0 take no part."""
    rows = rows.contiguous()
    count, k = rows.shape
    parts = triton.cdiv(count, _ROWS)
    partial = rows.new_zeros(parts, k, dtype=torch.float64)
    if count and k:
        _weigh[(triton.cdiv(k, _BLOCK), parts)](rows, factors.contiguous(), partial, count, k, _ROWS, _BLOCK)
    return partial.sum(0)


@triton.jit
def _square(rows, found, k, parts, SPAN: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, SPAN, BLOCK):
        column = part * SPAN + start + tl.arange(0, BLOCK)
        value = tl.load(rows + row * k + column, mask=column < k, other=0.0).to(tl.float64)
        total += value * value
    tl.store(found + row * parts + part, tl.sum(total, 0))


@triton.jit
def _weigh(rows, factors, found, count, k, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    part = tl.program_id(1)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float64)
    for step in range(ROWS):
        row = (part * ROWS + step).to(tl.int64)
        factor = tl.load(factors + row, mask=row < count, other=0.0)
        value = tl.load(rows + row * k + column, mask=column < tl.where(factor != 0.0, k, 0), other=0.0)
        total += factor * value.to(tl.float64)
    tl.store(found + part.to(tl.int64) * k + column, total, mask=column < k)
