"""Accuracies by (data set, role, epsilon), the paper's or ours, for papers whose experiments differ in more than one
method: a role is what a model is in the paper, such as its linear one or its CNN with shuffled batches."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dpstudy.tables.claims.finding import number
from dpstudy.tables.claims.grid import Value


class Point(NamedTuple):
    """A point of a training curve: passes over the data, the epsilon spent so far (None without noise), accuracy."""

    epochs: float
    spent: float | None
    accuracy: Value


@dataclass(frozen=True)
class Run:
    """One cell of the study.

    Attributes:
        dataset: what the paper calls it.
        entry: its features and method entry, as text.
        n: number of training records.
        metrics, ledger: its documents.
        curve: its points in the order of steps; empty for closed forms.
    """

    dataset: str
    role: str
    entry: str
    epsilon: float
    n: int
    accuracy: Value
    metrics: Mapping
    ledger: Mapping
    curve: tuple[Point, ...] = ()


@dataclass(frozen=True)
class Search:
    """A search over hyper-parameters: its min, max, median and mad in percent, and its trials where they are known."""

    statistics: Mapping[str, float]
    trials: Sequence[Mapping] = ()


@dataclass(frozen=True)
class Scores:
    """Accuracies.

    Attributes:
        values: (data set, role, epsilon) -> value; epsilon is math.inf without privacy.
        runs: the cells behind them; none for printed numbers.
        resized: cells in the same roles, trained on another number of records.
        searches: (data set, model) -> search.
    """

    values: Mapping[tuple[str, str, float], Value]
    runs: Sequence[Run] = ()
    searches: Mapping[tuple[str, str], Search] = field(default_factory=dict)
    resized: Sequence[Run] = ()

    def get(self, dataset: str, role: str, epsilon: float) -> Value | None:
        """One value, or None."""
        return self.values.get((dataset, role, epsilon))

    @property
    def datasets(self) -> list[str]:
        """The data sets, in order."""
        return list(dict.fromkeys(dataset for dataset, _, _ in self.values))

    def epsilons(self, dataset: str, role: str) -> list[float]:
        """Where a role has a number, ascending."""
        return sorted(key[2] for key in self.values if key[:2] == (dataset, role))

    def best(self, dataset: str, role: str, most: float = math.inf) -> Value | None:
        """The highest number of a role at finite epsilons up to `most`."""
        found = [self.get(dataset, role, e) for e in self.epsilons(dataset, role) if e <= most and not math.isinf(e)]
        return max(found, key=lambda value: value.mean, default=None)

    def pairs(
        self, left: str, right: str, datasets: Sequence[str] = (), private: bool = True
    ) -> Iterator[tuple[str, Value, Value]]:
        """(name, left, right) wherever two roles have a number at the same data set and (finite) epsilon."""
        for (dataset, role, epsilon), value in self.values.items():
            other = self.get(dataset, right, epsilon)
            wanted = role == left and (not datasets or dataset in datasets) and math.isinf(epsilon) != private
            if wanted and other is not None:
                yield f"{dataset} {number(epsilon)}", value, other

    def of_role(self, *roles: str) -> list[Run]:
        """The runs in one of these roles, in order."""
        return [run for run in self.runs if run.role in roles]

    def of_any_size(self, role: str) -> list[Run]:
        """The same of a role, on any number of records."""
        return [run for run in (*self.runs, *self.resized) if run.role == role]
