"""Rounding of printed bounds in the safe direction: upper bounds up, lower bounds down.

Whatever prints an epsilon or a delta that was computed does it here. (Targets are text, as in the config.)
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

_SMALL = -5  # the power of ten from which on downwards numbers are printed with an exponent


def upper_bound(value: float, digits: int = 4, places: int | None = None) -> str:
    """A number >= 0 as text, rounded up to significant digits or decimal places.

    >>> upper_bound(1.99901), upper_bound(2.0), upper_bound(1.949e-6, 2), upper_bound(2.3971, places=2)
    ('2', '2', '2e-6', '2.40')
    """
    return _rounded(value, digits, places, ROUND_CEILING)


def lower_bound(value: float, digits: int = 4, places: int | None = None) -> str:
    """A number >= 0 as text, rounded down to significant digits or decimal places.

    >>> lower_bound(1.239, places=2), lower_bound(1.06819928)
    ('1.23', '1.068')
    """
    return _rounded(value, digits, places, ROUND_FLOOR)


def _rounded(value: float, digits: int, places: int | None, rounding: str) -> str:
    if math.isinf(value):
        return "∞"
    exact = Decimal(repr(float(value)))  # what a ledger says, not the binary digits behind it
    if places is not None:
        return f"{exact.quantize(Decimal(1).scaleb(-places), rounding=rounding):f}"
    if not exact:
        return "0"
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding).normalize()
    if rounded.adjusted() > _SMALL:
        return f"{rounded:f}"
    return f"{rounded.scaleb(-rounded.adjusted()).normalize():f}e{rounded.adjusted()}"
