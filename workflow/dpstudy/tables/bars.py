"""Error bars in figures, and small offsets that keep the points of several lines apart."""

import itertools
import math
from collections.abc import Iterable

INTERVALS = "bars are 95 % intervals over seeds and test records (of a single seed: over these alone)"
BARS = f"{INTERVALS}, where there is none one standard deviation over seeds"
_STEPS = 3  # lines stand aside by so many steps at most, all together
_SHARE = 0.012  # of an axis, a step


def bar(mean: float, std: float | None, ends: tuple[float, float] | None) -> tuple[float, float] | None:
    """The lengths of a point's error bar (below, above): its interval, else one standard deviation.

    None: no bar, since a single seed has no known standard deviation, which does not mean that it is 0.

    >>> bar(90.0, 0.5, (88.0, 91.0)), bar(90.0, 0.5, None), bar(90.0, 0.0, None)
    ((2.0, 1.0), (0.5, 0.5), None)
    """
    if ends is not None:
        return max(0.0, mean - ends[0]), max(0.0, ends[1] - mean)
    return (std, std) if std else None


def lengths(bars: Iterable[tuple[float, float] | None]) -> list[tuple[float, ...]] | None:
    """Error bars as Matplotlib takes them, (2, n), NaN for points without one; None where no point has one."""
    known = list(bars)
    return list(zip(*(one or (math.nan, math.nan) for one in known), strict=True)) if any(known) else None


def asides(count: int, step: float, gap: float) -> list[float]:
    """The offsets of `count` lines, centred at 0: `step` apart, or closer if there are many lines or little room.

    `gap` is the distance to the next position on the axis.

    >>> asides(2, 6.0, 100.0), asides(3, 6.0, 6.0)
    ([-3.0, 3.0], [-1.0, 0.0, 1.0])
    """
    each = min(step, _STEPS * step / count, gap / 2 / count) if count else 0.0
    return [each * (number - (count - 1) / 2) for number in range(count)]


def factors(count: int, positions: Iterable[float], columns: int = 1) -> list[float]:
    """The offsets on a logarithmic axis, as factors of the positions of each line.

    Args:
        count: of lines.
        positions: positive; where points may stand.
        columns: how many panels lie side by side: a step is a larger share of a narrow one.
    """
    logs = sorted({math.log(position) for position in positions})
    span = (logs[-1] - logs[0] if logs else 0.0) or 1.0
    gap = min((second - first for first, second in itertools.pairwise(logs)), default=span)
    return [math.exp(aside) for aside in asides(count, _SHARE * columns * span, gap)]
