"""The papers' own conversions from noise to epsilon, for comparison with certified epsilons.

None of these certifies anything: a ledger's epsilon always comes from `accounting.certify`.
"""

import math
from collections.abc import Callable, Sequence

from dpstudy.privacy.accountants import zcdp_epsilon
from dpstudy.privacy.events import Event
from dpstudy.privacy.renyi import rdp_curve, rdp_epsilon

# tramer2021 used the orders of the library of its day (Opacus 0.9).
_TRAMER_ORDERS = tuple([1 + x / 10.0 for x in range(1, 100)] + list(range(12, 64)))


def mehta2023(events: Sequence[Event], delta: float) -> float:
    """The simple zCDP conversion rho + 2 sqrt(rho ln(1/delta)), full-batch releases only.

    mehta2023 states its Theorems 2.1 to 2.3 in zCDP. Which conversion its epsilons come from it does not print, but for
    DP-SGD (B.1: a Renyi accountant).
    """
    return zcdp_epsilon(events, delta)


def tramer2021(events: Sequence[Event], delta: float) -> float:
    """Renyi DP with the conversion epsilon(alpha) + ln(1/delta)/(alpha - 1) (tramer2021, Lemma B.4)."""
    curve = rdp_curve(events, _TRAMER_ORDERS)
    return min(rdp + math.log(1 / delta) / (order - 1) for order, rdp in zip(_TRAMER_ORDERS, curve, strict=True))


def de2022(events: Sequence[Event], delta: float) -> float:
    """Renyi DP with the improved conversion (de2022, section 2)."""
    return rdp_epsilon(events, delta)


CONVERSIONS: dict[str, Callable[[Sequence[Event], float], float]] = {
    "mehta2023": mehta2023,
    "tramer2021": tramer2021,
    "de2022": de2022,
}
