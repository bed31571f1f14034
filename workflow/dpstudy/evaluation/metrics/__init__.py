"""Metrics: the names in a study's `evaluation.metrics` are modules here, each with an object METRIC.

No list of them is kept in code: a new metric is a new file, and makes nothing stale that others have made.
"""

import functools
import importlib
import pkgutil
from collections.abc import Iterable

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion
from dpstudy.evaluation.metric import Metric


@functools.cache
def names() -> tuple[str, ...]:
    """The names of all metrics."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@functools.cache
def metric_of(name: str) -> Metric:
    """The metric with this name.

    Raises:
        StudyError: there is none.

    >>> metric_of("top1").label
    'top-1 accuracy (%)'
    """
    if name not in names():
        raise StudyError(f"unknown metric {name!r}{suggestion(name, names())}; there is {', '.join(names())}")
    return importlib.import_module(f"{__name__}.{name}").METRIC


def ordered(given: Iterable[str]) -> list[str]:
    """The names among `given` that are metrics, in the order of every output.

    >>> ordered(["auc", "seed", "top1"])
    ['top1', 'auc']
    """
    known = names()
    return sorted((name for name in given if name in known), key=lambda name: metric_of(name).order)


def modules(given: Iterable[str]) -> list[str]:
    """The import paths of the metrics among `given`, for code that a script imports by name."""
    return sorted({f"{__name__}.{name}" for name in given if name in names()})
