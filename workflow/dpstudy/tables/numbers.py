"""Formatting of numbers in tables and in the report."""

import math
import statistics
from collections.abc import Iterable

from dpstudy.evaluation.metrics import metric_of


def decimals(std: float | None, metric: str) -> int:
    """The number of decimals that shows the first digit of `std`, within the metric's limits.

    `std` itself then has one or two significant digits, unless the metric's most do not reach it.
    """
    fewest, most = (1, 2) if metric_of(metric).percent else (3, 4)
    if not std:
        return fewest
    first = -math.floor(math.log10(std))
    return max(0, min(max(first, min(fewest, first + 1)), most))


def usual_decimals(stds: Iterable[float | None], metric: str) -> int:
    """The number of decimals for a set of numbers, by their median standard deviation.

    Zeros and None do not count: they say that nothing varied, or that nobody knows.
    """
    known = [std for std in stds if std]
    return decimals(statistics.median(known) if known else None, metric)


def over_seeds(statistic: str, counts: Iterable[int], sign: str = "±") -> str:
    """A description of a cell's numbers: "mean ± standard deviation over 3 seeds".

    Args:
        counts: how many seeds cells have; 0 for cells that are not there.
    """
    known = sorted({count for count in counts if count})
    if known == [1]:
        return "of a single seed"
    return f"{statistic} {sign} standard deviation over {' or '.join(map(str, known)) or 'no'} seeds"


def interval_text(interval: tuple[float, float] | None, digits: int) -> str:
    """The interval as text, "0.50–0.57"; "" for None.

    >>> interval_text((0.496, 0.572), 2)
    '0.50–0.57'
    """
    return "" if interval is None else f"{interval[0]:.{digits}f}–{interval[1]:.{digits}f}"


def signed(value: float, digits: int) -> str:
    """A difference with its sign (ASCII minus); values that round to zero have none.

    >>> signed(-0.26, 1), signed(0.04, 1)
    ('-0.3', '0.0')
    """
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def significant(value: float, digits: int = 4) -> str:
    """A number with `digits` significant digits and no trailing zeros; large whole numbers in full.

    >>> significant(0.068266666), significant(60000)
    ('0.06827', '60000')
    """
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.{digits}g}"
