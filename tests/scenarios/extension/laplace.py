"""A mechanism of one's own: counts with discrete Laplace noise. All that dpstudy has to know of it stands here."""

from decimal import ROUND_FLOOR, Decimal, localcontext

from dpstudy.privacy.event_bounds import PURE
from dpstudy.privacy.events import Event
from dpstudy.privacy.mechanisms import PureMechanism, register

COUNTS = "counts"


@register
class Laplace(PureMechanism):
    """Integer sums plus discrete Laplace noise: epsilon-DP for epsilon = L1 sensitivity / scale."""

    name = "laplace"


PURE.add(Laplace.name)


def event(scale: float, positives: int) -> Event:
    """Of all class counts: a record with `positives` labels moves them by as much in L1."""
    return Event(COUNTS, Laplace.name, scale / positives, float(positives))


def released(source, counts, scale: float) -> list[int]:
    """The counts with noise of P[k] proportional to exp(-|k| / scale), exact to 2^-256."""
    return [int(count) + _noise(source.word(COUNTS, scale, 0, str(j)), scale) for j, count in enumerate(counts)]


def _noise(word: int, scale: float) -> int:
    with localcontext() as context:
        context.prec = 90
        fall = (Decimal(-1) / Decimal(scale)).exp()
        share = (Decimal(word) + Decimal("0.5")) / Decimal(2**256) * (1 + fall)  # P[k < 0] = fall / (1 + fall)
        if share < fall:  # P[noise <= -k] = fall^k / (1 + fall)
            return -int((share.ln() / fall.ln()).to_integral_value(ROUND_FLOOR))
        return int(((1 + fall - share).ln() / fall.ln()).to_integral_value(ROUND_FLOOR))
