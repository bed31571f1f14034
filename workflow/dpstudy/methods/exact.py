"""Exact private sums, for secure noise: contributions are rounded to a grid.

A sensitivity says by how much one record moves a sum. Rounded sums do not keep to it: with one record less every block
of a pass is cut elsewhere, and what float32 rounds off a million aligned records differs by more than one of them adds.
Here every contribution is a multiple of a power of two, and of so few bits that all products, and all partial sums over
as many records as there can be, have at most 53: float64 holds them without rounding. Then a sum does not depend on the
order of the records, on blocks, jobs, threads or the processor, and a record moves it by exactly what it contributes.

- Features are rounded *towards zero* to FEATURE_BITS bits below a power of two that covers their norm: no norm grows.
- A Gram matrix has products of 2 FEATURE_BITS bits, of which CAPACITY records have room.
- A gradient is a residual times features; residuals get the bits that the public number of records leaves.
- Scores are products of features with weights that are rounded to the bits left (weights are public by then).
- Sums over classes, and squares of norms, are made of such multiples too.

So a contribution is a function of its record alone, as long as elementwise functions (exp, cos, square roots, ...) give
the same bits wherever in an array a number stands, which tests/unit/methods/test_exact.py looks at.
"""

from __future__ import annotations

import math

import numpy as np

from dpstudy.core.arrays import Array, place_of
from dpstudy.core.errors import StudyError

FEATURE_BITS = 15
SUM_BITS = 53  # bits of float64's significand
CAPACITY = 1 << (SUM_BITS - 2 * FEATURE_BITS)  # 8,388,608 records
CLASS_GRID = 2.0**-50  # of p (1 - p), whose sum over classes is at most 1
BELOW = 1 - 2.0**-45  # factor on a bound: after a few roundings in float64 a norm is still below the bound
_MOST_BITS = 24  # kept of a record's features before clipping: as many as float32 has


def cover(value: float) -> float:
    """The smallest power of two that is at least the positive `value`.

    >>> cover(0.7), cover(1.0), cover(1.1)
    (1.0, 1.0, 2.0)

    Raises:
        ValueError: there is none.
    """
    if not 0 < value < math.inf:
        raise ValueError(f"no power of two covers {value}: sums of contributions without a bound are not exact")
    mantissa, exponent = math.frexp(value)
    return math.ldexp(1.0, exponent - (mantissa == 0.5))


def covers(values: Array) -> Array:
    """(n,) smallest powers of two that are at least the (n,) values; 1 where a value is 0 or not finite."""
    xp = place_of(values).xp
    usable = (values > 0) & (values < math.inf)
    values = xp.where(usable, values, 1.0)
    mantissa = xp.frexp(values)[0]
    return xp.where(mantissa == 0.5, values, values / mantissa)


def residual_bits(capacity: int) -> int:
    """The bits of residuals for which sums of their products with features, over `capacity` records, are exact."""
    return SUM_BITS - FEATURE_BITS - math.ceil(math.log2(capacity))


def grid_of(bound: float) -> float | None:
    """The grid spacing for features of norm at most `bound`; None where there is no bound, and so no noise."""
    return cover(bound) * 2.0**-FEATURE_BITS if bound < math.inf else None


def truncated(values: Array, grid: Array | float) -> Array:
    """`values` rounded towards zero to multiples of `grid`, a power of two (or an array of such)."""
    rounded = towards_zero(values * (1 / grid))
    rounded *= grid
    return rounded


def towards_zero(values: Array) -> Array:
    """The values rounded towards zero to whole numbers, in place."""
    return np.trunc(values, out=values) if isinstance(values, np.ndarray) else values.trunc_()


def whole_rows(x: Array) -> tuple[Array, Array, Array]:
    """(n, d) whole numbers y, (n,) units u and (n,) norms, where u y is float64 `x` rounded towards zero.

    The sum of y^2 is exact, so that the norm of u y is the same however it is added up; it is rounded upwards. A row
    with a NaN or an infinity has the norm NaN.
    """
    xp = place_of(x).xp
    bits = min(_MOST_BITS, (SUM_BITS - math.ceil(math.log2(max(1, x.shape[1])))) // 2)
    peak = xp.amax(xp.abs(x), 1)
    unit = covers(peak) * 2.0**-bits
    y = towards_zero(x * (1 / unit)[:, None])
    norm = xp.einsum("nd,nd->n", y, y) ** 0.5 * unit * (1 + 2.0**-51)
    return y, unit, xp.where(peak < math.inf, norm, math.nan)


def on_grid(matrix: Array, bits: int = FEATURE_BITS) -> Array:
    """(m, d) public weights in float64, rounded so that sums of products with `bits`-bit features are exact."""
    where = place_of(matrix)
    wide = where.array(matrix, "float64")
    longest = float((wide * wide).sum(1).max()) ** 0.5 * (1 + 1e-9)
    if not 0 < longest < math.inf:
        return wide
    return truncated(wide, cover(longest) * 2.0 ** (bits - SUM_BITS))


def softmax(scores: Array) -> Array:
    """The softmax over the classes of (m, n) float64 scores, in place; its sum of exponentials is exact."""
    xp = place_of(scores).xp
    scores -= xp.amax(scores, 0)
    odds = truncated(xp.exp(scores), 2.0 ** (math.ceil(math.log2(len(scores))) - SUM_BITS + 1))
    odds /= odds.sum(0)
    return odds


def sigmoid(scores: Array) -> Array:
    """The logistic function 1/(1 + exp(-scores)) in float64."""
    xp = place_of(scores).xp
    return 1 / (1 + xp.exp(-scores))


def lengths(residuals: Array) -> tuple[Array, Array]:
    """(m, n) float64 residuals of at most 1, rounded towards zero, and their (n,) correctly rounded Euclidean norms."""
    bits = (SUM_BITS - math.ceil(math.log2(len(residuals) + 1))) // 2
    residuals = truncated(residuals, 2.0**-bits)
    return residuals, (residuals * residuals).sum(0) ** 0.5


def check_capacity(rows: int, capacity: int) -> None:
    """Refuse more records than exact sums have room for.

    Raises:
        StudyError: there are more, of which the public number of records knows nothing.
    """
    if rows > capacity:
        raise StudyError(f"{rows:,} records, where exact sums (noise: secure) have room for {capacity:,}")
