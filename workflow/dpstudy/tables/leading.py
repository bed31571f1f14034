"""The best of several values, if errors over seeds and test records allow to tell."""

import math
from collections.abc import Callable, Iterable

from dpstudy.evaluation.standard_error import standard_error as error_of_mean
from dpstudy.tables.layout import Cell

_MEDIAN = math.sqrt(math.pi / 2)  # the standard error of a median in those of the mean, for normal values


def leader(
    cells: Iterable[Cell], statistic: str = "mean", merit: Callable[[float], float] = lambda value: value
) -> Cell | None:
    """The cell that exceeds all others by more than two standard errors of the difference; None where there is none.

    It is None also for a single cell, or if an error is unknown.

    Args:
        merit: of a value, a number of which more is better (`Metric.merit`).

    The cells' errors count as independent. On one test split they rather go together, so this errs towards None.
    """
    ranked = sorted(cells, key=lambda cell: merit(cell.number), reverse=True)
    errors = [error for cell in ranked if (error := standard_error(cell, statistic)) is not None]
    if len(ranked) < 2 or len(errors) < len(ranked):
        return None
    rivals = zip(ranked[1:], errors[1:], strict=True)
    ahead = all(abs(ranked[0].number - cell.number) > 2 * math.hypot(errors[0], error) for cell, error in rivals)
    return ranked[0] if ahead else None


def standard_error(cell: Cell, statistic: str = "mean") -> float | None:
    """The standard error of a cell's value, over seeds and (if it has an interval) test records; in the metric's unit.

    None where nothing tells it: of a single seed, and where all seeds give one value and there is no interval.
    """
    if cell.seeds < 2 or cell.std is None or (not cell.std and cell.over_records is None):
        return None
    wider = _MEDIAN if statistic == "median" else 1
    return error_of_mean(wider * cell.std, cell.seeds, cell.over_records)
