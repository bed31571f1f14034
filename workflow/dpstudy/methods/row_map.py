"""The map of each private record before records are summed: scaling, centring, clipping and rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpstudy.core.arrays import Array, Place, place_of, row_norms
from dpstudy.methods import exact
from dpstudy.methods.bounds import LARGEST_NORM, LOOKED_AT, SMALLEST_NORM, due, hold

# Of a bound: norms are float64, a factor and each product with it are rounded to float32, 2^-23 of the norm at most.
ROUNDED = 1 - 1e-6
_CACHED_VALUES = 1 << 15  # float64 numbers of a part that a map goes over again and again: it stays in cache


@dataclass(frozen=True)
class RowMap:
    """A map of each record by public or released constants: (x - center) * scale, then a bound on its norm.

    Attributes:
        unit_first: the record is scaled to Euclidean norm 1 before anything else.
        center, scale: (d,) float32, or None.
        unit: every record is scaled to Euclidean norm 1 (zero stays zero); else
        clip: it is scaled down to at most this norm.
        exact: it is rounded towards zero to exact.FEATURE_BITS bits below the smallest power of two that covers `bound`
            or, where there is none, the record's own norm.
    """

    unit_first: bool = False
    center: np.ndarray | None = None
    scale: np.ndarray | None = None
    unit: bool = False
    clip: float = math.inf
    exact: bool = False

    @property
    def bound(self) -> float:
        """The norm bound of mapped records."""
        return 1.0 if self.unit else self.clip

    def __call__(self, x: Array, out: Array | None = None) -> tuple[Array, Array]:
        """(rows, d) mapped features, float32, and bounds on their norms, (rows,) float64.

        Exact ones may be written to `out`, which may be float64.

        A record with a NaN, an infinity or a norm above LARGEST_NORM becomes zero; its norm is given as NaN.

        Raises:
            RuntimeError: some records, measured again, are longer than they may be (bounds.py).
        """
        with np.errstate(all="ignore"):  # what overflows becomes zero here
            where = place_of(x)
            x, norm = self._exact(where, x, out) if self.exact else self._mapped(where, x)
        if math.isfinite(self.bound) and due(len(x)):
            hold("mapped records", row_norms(x[:LOOKED_AT]), self.bound)
        return x, norm

    def _exact(self, where: Place, x: Array, out: Array | None) -> tuple[Array, Array]:
        """Mapped features that depend on their record alone, bit for bit, since sums are exact; float32 holds them."""
        mapped, norms = where.empty(*x.shape) if out is None else out, where.empty(len(x), dtype="float64")
        rows = len(x) if where.device == "cuda" else max(1, _CACHED_VALUES // max(1, x.shape[1]))
        for start in range(0, len(x), rows):
            part = slice(start, start + rows)
            mapped[part], norms[part] = self._exact_block(where, where.array(x[part], "float64"))
        return mapped, norms

    def _exact_block(self, where: Place, x: Array) -> tuple[Array, Array]:
        xp = where.xp
        if self.unit_first:
            y, unit, norm = exact.whole_rows(x)
            x = y * xp.where(norm <= LARGEST_NORM, unit * _to_unit(norm), math.nan)[:, None]
        if self.center is not None:
            x = x - where.array(self.center, "float64")
        if self.scale is not None:
            x = x * where.array(self.scale, "float64")
        y, unit, norm = exact.whole_rows(x)
        dead, some = ~(norm <= LARGEST_NORM), where.array(norm >= SMALLEST_NORM, "float64")
        if self.unit:
            factor, most = exact.BELOW * _to_unit(norm), some
        elif math.isfinite(self.clip):
            most = xp.where(norm > self.clip, self.clip, norm)
            factor = xp.where(norm > self.clip, exact.BELOW * self.clip / norm, 1.0)
        else:
            factor, most = some, norm * some
        grid = exact.covers(most)
        if math.isfinite(self.bound):
            grid[:] = exact.cover(self.bound)
        grid *= 2.0**-exact.FEATURE_BITS
        y *= (factor * unit / grid)[:, None]
        if dead.any():
            y[dead] = 0.0
        y = exact.towards_zero(y)
        y *= grid[:, None]
        return y, xp.where(dead, math.nan, most)

    def _mapped(self, where: Place, x: Array) -> tuple[Array, Array]:
        xp = where.xp
        x = where.array(x, "float32")
        if self.unit_first:
            norm = row_norms(x)
            x = x * where.array(xp.where(norm <= LARGEST_NORM, _to_unit(norm), math.nan), "float32")[:, None]
        if self.center is not None:
            x = x - where.array(self.center)
        if self.scale is not None:
            x = x * where.array(self.scale)
        norm = row_norms(x)
        dead = ~(norm <= LARGEST_NORM)
        if dead.any():
            x = xp.where(dead[:, None], 0.0, x)
        if self.unit:
            factor = xp.where(dead, 0.0, ROUNDED * _to_unit(norm))
            x = x * where.array(factor, "float32")[:, None]
            norm = where.array(factor > 0, "float64")
        elif math.isfinite(self.clip):
            x = x * where.array(xp.where(dead, 0.0, _clipping(norm, self.clip)), "float32")[:, None]
            norm = xp.where(norm > self.clip, self.clip, norm)
        return x, xp.where(dead, math.nan, norm)


def _clipping(norm: Array, bound: float) -> Array:
    """Clipping factors, rounded down: a norm never exceeds the bound by more than float32's rounding of a product."""
    return place_of(norm).xp.where(norm > bound, ROUNDED * bound / norm, 1.0)


def _to_unit(norm: Array) -> Array:
    """1/norm, or 0 for norms so small that float32 does not hold their square: they would be scaled beyond 1."""
    return place_of(norm).xp.where(norm < SMALLEST_NORM, 0.0, 1 / norm)
