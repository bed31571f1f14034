"""Differences of means over seeds, and their standard errors.

The standard error of a mean joins two parts, by the root of the sum of their squares: the standard deviation over seeds
divided by the root of their number, and, where metrics.json has 95 % intervals over test records, the distance of their
mean ends divided by 2 x 1.96. The second does not shrink with more seeds: all are scored on the same records. That of a
difference joins those of both means in the same way, as if the trees were scored on different records. Where these are
the same, some of that error cancels, and intervals do not tell how much: a difference beyond two standard errors is the
surer for it, and one within them may be real.
"""

import math
from collections.abc import Iterator, Sequence

from dpstudy.comparison.change import GROUP, METRIC, Change, is_number
from dpstudy.core.errors import StudyError
from dpstudy.evaluation.aggregate import mean_interval, mean_median_std
from dpstudy.evaluation.standard_error import standard_error as error_of_mean

_NO_METRIC = ("seed", "split", "seconds", "releases", "groups", "n", "tested")
_ENDS = ("_low", "_high")


def mean_changes(place: str, a: list[dict], b: list[dict], paths: tuple[str, str]) -> Iterator[Change]:
    """The changes of every metric, on the whole test split and on its subgroups.

    Args:
        place: the cell.
        a, b: the seeds of both metrics.json.
        paths: of both, for messages.

    Raises:
        StudyError: a value is no finite number.
    """
    yield from _changes(place, METRIC, "", a, b, paths)
    groups = [[row.get("groups", {}) for row in rows] for rows in (a, b)]
    for name in dict.fromkeys(name for rows in groups for row in rows for name in row):
        entries = [[row[name] for row in rows if name in row] for rows in groups]
        yield from _changes(place, GROUP, f"{name} ", entries[0], entries[1], paths)


def standard_error(entries: Sequence[dict], metric: str) -> float | None:
    """The standard error of a metric's mean over seeds; None for a single seed.

    Args:
        entries: the seeds of a metrics.json, or one group of each, that have the metric.
    """
    if len(entries) < 2:
        return None
    std = mean_median_std([entry[metric] for entry in entries])[2]
    return error_of_mean(std, len(entries), mean_interval(entries, metric))


def _changes(place: str, part: str, prefix: str, a: list[dict], b: list[dict], paths: tuple[str, str]):
    for metric in dict.fromkeys(key for entry in (*a, *b) for key in entry if _is_metric(key)):
        sides = [[entry for entry in entries if metric in entry] for entries in (a, b)]
        for path, side in zip(paths, sides, strict=True):
            _check(path, side, metric)
        before, after = ([[entry.get(metric + end) for end in ("", *_ENDS)] for entry in side] for side in sides)
        if before != after:
            means = [mean_median_std([entry[metric] for entry in side])[0] if side else None for side in sides]
            errors = [error for side in sides if (error := standard_error(side, metric)) is not None]
            joined = math.hypot(*errors) if len(errors) == len(sides) else None
            yield Change(place, part, prefix + metric, means[0], means[1], joined)


def _is_metric(key: str) -> bool:
    return key not in _NO_METRIC and not key.endswith(_ENDS)


def _check(path: str, entries: list[dict], metric: str) -> None:
    for entry in entries:
        present = [metric, *(metric + end for end in _ENDS if any(metric + other in entry for other in _ENDS))]
        for key in present:
            if not is_number(entry.get(key)) or not math.isfinite(entry[key]):
                raise StudyError(
                    f"{path}: {key} is {entry.get(key)!r}, not a number; delete it and run that study again"
                )
