"""Trials of hyper-parameter searches, for tables; their values are on the validation split."""

import os
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table
from dpstudy.evaluation.summary import cell_name
from dpstudy.tables.published import lookup
from dpstudy.tables.results import Results

STATISTICS = ("min", "max", "median", "mad")
BY_LABEL = "label"  # what tells a search's cells apart (a normalisation), seen as one more parameter


@dataclass(frozen=True)
class Found:
    """The trials of one table row, pooled over its searches.

    Attributes:
        values: of the trials that did not fail, in percent.
        failed: how many did.
        published: statistic -> printed value, where there is one.
    """

    label: str
    dataset: str
    epsilon: str
    values: tuple[float, ...]
    failed: int
    published: Mapping[str, float]

    def statistic(self, name: str) -> float:
        """A statistic of the trials, one of STATISTICS; mad is the median absolute deviation from the median."""
        if name == "mad":
            middle = statistics.median(self.values)
            return statistics.median(abs(value - middle) for value in self.values)
        others: dict[str, Callable[[tuple[float, ...]], float]] = {"min": min, "max": max, "median": statistics.median}
        return others[name](self.values)


def lay_searches(name: str, spec: dict, results: Results) -> list[Found]:
    """The rows of a table of searches, in config order."""
    searches = []
    for row in spec["searches"]:
        trials = [trial for _, trial in pooled(row, results.trials)]
        values = tuple(trial["value"] for trial in trials if trial["state"] == "complete")
        if not values:
            raise StudyError(f"table {name}: every trial of {row['label']!r} failed")
        printed = row.get("published")
        numbers = {s: lookup({**printed, "statistic": s}, row["epsilon"]) if printed else None for s in STATISTICS}
        published = {s: one.value for s, one in numbers.items() if one and one.value is not None}
        failed = len(trials) - len(values)
        searches.append(Found(row["label"], row["dataset"], row["epsilon"], values, failed, published))
    return searches


def pooled(row: dict, paths: Mapping[str, str | os.PathLike]) -> Iterator[tuple[dict, dict]]:
    """(cell of the row, trial) for each trial of a row's searches; a trial has its setting (text), `value`, `state`."""
    for cell in row["cells"]:
        path = paths[cell_name(row["dataset"], cell["features"], cell["entry"], row["epsilon"])]
        for trial in read_table(path).to_pylist():
            yield cell, {key: value for key, value in trial.items() if key not in ("trial", "seconds")}
