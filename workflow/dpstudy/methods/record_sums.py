"""Norms of record gradients, and sums of clipped ones, with a bound on what rounding does to either on any processor.

A layer's rule holds a record's gradient as tensors, or as the two factors of an outer product: the very numbers that
are normed are clipped and summed. With u the unit roundoff of their type, 2^-24 in float32:

Norm. Squares of at most 64 numbers are added up in the numbers' own type, these sums in float64. Whatever the order,
each square meets 64 roundings at most; their root, which is squared again in float64, is off by two. So the result is
at least (1 - u)^68 of the exact one; where squares underflow, twice the smallest normal number is lost for each at
most. `squared_lengths` makes up for both: it is never below the exact square (of fewer than 6 x 10^10 numbers), and at
most 1 + 9e-6 times it where nothing underflows.

Sum. Products of a factor and a number of a gradient, and their sums over records, are taken in float64, v = 2^-53.
Where each product reaches the sum by h roundings at most, the sum of N contributions of norm C' at most differs from
the exact one, in Euclidean norm, by gamma N C' at most, gamma = h v/(1 - h v): a product is off by a factor within
1 +- gamma (Higham 2002, section 3.1), and a sum of vectors is no longer than its terms together. Hence two sums, with a
record and without it, whatever the order and the blocks of each, are apart by C' (1 + 2 gamma N) at most, and by C
where contributions are clipped to C' = C/(1 + 2 gamma N): `clipped_for`. For 50,000 records, 128 at a time, C' is
C (1 - 6e-9).

What is bounded is what rounding does to contributions as they were computed. A record's own gradient comes in float32
out of a pass with others, and its last bits may depend on how many they are and on its place among them; only record by
record (one_by_one.py) they do not.
"""

import math

import torch

_ADDED = 64  # numbers whose squares are added up in their own type
_SQUARE_LOSES = 70  # unit roundoffs; (1 + 70 u) (1 - u)^68 > 1
_AT_ONCE = {"cpu": 1 << 20, "cuda": 1 << 24}  # numbers made float64: on a CPU they stay in cache
_ROUNDINGS = 6  # of a product, beside additions over records, micro-batches and processes


def squared_lengths(values: torch.Tensor) -> torch.Tensor:
    """(...) float64 squared Euclidean norms of (..., k) values, not below the exact ones (see the module)."""
    k, limits = values.shape[-1], torch.finfo(values.dtype)
    whole = k - k % _ADDED
    parts = [values[..., :whole].unflatten(-1, (-1, _ADDED))] if whole else []
    parts += [values[..., None, whole:]] if k > whole else []
    squares = [torch.linalg.vector_norm(part, dim=-1).double().square().sum(-1) for part in parts]
    return torch.stack(squares).sum(0) * (1 + _SQUARE_LOSES * limits.eps / 2) + 2 * k * limits.tiny


def clipping_factors(norms: torch.Tensor, bound: float) -> torch.Tensor:
    """(n,) factors min(1, bound/norm) of (n,) float64 norms, rounded towards zero; 0 where the norm is not finite."""
    margin = 1 - 8 * torch.finfo(norms.dtype).eps
    factors = torch.where(norms > bound, bound / norms * margin, 1.0) if bound < math.inf else torch.ones_like(norms)
    return torch.where(torch.isfinite(norms), factors.nan_to_num(1.0), 0.0)


def weighted_sum(factors: torch.Tensor, each: torch.Tensor) -> torch.Tensor:
    """(...) float64: the sum over records of (n,) float64 factors times (n, ...) gradients."""
    rows = finite_rows(each, factors).reshape(len(each), -1)
    total = rows.new_empty(rows.shape[1], dtype=factors.dtype)
    columns = max(1, _AT_ONCE[rows.device.type] // len(rows))
    for part, own in zip(rows.split(columns, 1), total.split(columns), strict=True):
        torch.mv(part.to(factors.dtype).T, factors, out=own)
    return total.view(each.shape[1:])


def finite_rows(values: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """`values` (n, ...) with zeros in the rows whose factor is 0: 0 x NaN is NaN."""
    dead = factors == 0
    return torch.where(dead.reshape(-1, *[1] * (values.ndim - 1)), 0.0, values) if dead.any() else values


def clipped_for(norm: float, records: int, micro_batch: int, processes: int = 1) -> float:
    """C', to which contributions are clipped so that one of them moves their computed sum by C at most.

    Args:
        norm: C.
        records: N, the most that a sum has, a public number.
        micro_batch: of how many records sums are taken, which are then added up, and those of all processes.
    """
    roundings = min(micro_batch, records) + math.ceil(records / micro_batch) + processes + _ROUNDINGS
    gamma = roundings * 2.0**-53 / (1 - roundings * 2.0**-53)
    return norm / (1 + 2 * gamma * records)
