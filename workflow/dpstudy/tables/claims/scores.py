"""Accuracies by (data set, role, epsilon), printed or ours, and the evidence that they are.

A role is what a model is in the paper, such as its linear one or its CNN with shuffled batches.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from operator import attrgetter
from typing import Any, NamedTuple

from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.metrics import metric_of
from dpstudy.evaluation.on_training import ON_TRAINING
from dpstudy.tables.claims.grid import Triples, Value, highest, number
from dpstudy.tables.grouping import by_key, grouped


class Point(NamedTuple):
    """A point of a training curve: passes over the data, the epsilon spent so far (None without noise), accuracy."""

    epochs: float
    spent: float | None
    accuracy: Value


def matched(left: Iterable["Run"], right: Iterable["Run"], *names: str) -> list[tuple["Run", "Run"]]:
    """The pairs of a run in `left` and one in `right` whose attributes of these names are equal."""
    alike = attrgetter(*names)
    return [(one, other) for one, other in product(left, right) if alike(one) == alike(other)]


@dataclass(frozen=True)
class Run:
    """One cell of the study in a role.

    Attributes:
        dataset: what the paper calls it; of a paper that compares backbones, with the backbone: "CIFAR-10, ResNet50".
        entry: its features and method entry, as text.
        n: number of training records.
        metrics, ledger: its documents.
        curve: its points in the order of steps; empty for closed forms.
        audit: its document, where its method attacks what it claims.
        backbone: what its data set's name ends in, where it does; of mehta2023 the pre-training.
        black_box: what an attack by the loss of trained models found, where there was one.
        epochs: of mehta2023's method, which is its role.
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
    audit: Mapping = field(default_factory=dict)
    backbone: str = ""
    black_box: Mapping = field(default_factory=dict)
    epochs: int = 1

    @property
    def data(self) -> str:
        """The paper's data set, without the backbone."""
        return self.dataset.removesuffix(f", {self.backbone}") if self.backbone else self.dataset

    @property
    def private(self) -> bool:
        """Whether its epsilon is finite."""
        return not math.isinf(self.epsilon)

    @property
    def at(self) -> str:
        """Its data set and epsilon, as a comparison names a cell."""
        return f"{self.dataset} {number(self.epsilon)}"


@dataclass(frozen=True)
class Search:
    """A hyper-parameter search: min, max, median and mad in percent, its trials where known, and failed trials."""

    statistics: Mapping[str, float]
    trials: Sequence[Mapping] = ()
    failed: int = 0


@dataclass(frozen=True)
class Scores:
    """The accuracies of a paper, or of our cells, by role.

    Attributes:
        values: (data set, role, epsilon) -> value; epsilon is math.inf without privacy. Of mehta2023 a data set is a
            place, and a role (method, epochs); see `mehta2023_printed.Grid`.
        runs: the cells behind them; of printed numbers only those that stand in an order (such as de2022's Table 2).
        resized: cells in the same roles, trained on another number of records.
        searches: (data set, model) -> search.
    """

    values: Mapping[tuple[Any, Any, float], Value]
    runs: Sequence[Run] = ()
    searches: Mapping[tuple[str, str], Search] = field(default_factory=dict)
    resized: Sequence[Run] = ()

    def get(self, dataset: Hashable, role: Hashable, epsilon: float) -> Value | None:
        """The accuracy in this role, or None."""
        return self.values.get((dataset, role, epsilon))

    @property
    def datasets(self) -> list[Any]:
        """The data sets, in order."""
        return list(dict.fromkeys(dataset for dataset, _, _ in self.values))

    def epsilons(self, dataset: str, role: str | None = None) -> list[float]:
        """The epsilons at which a role, or any, has a number, ascending."""
        return sorted({key[2] for key in self.values if key[0] == dataset and role in (None, key[1])})

    def finite(self, dataset: str, role: str | None = None) -> list[float]:
        """The finite of these epsilons."""
        return [epsilon for epsilon in self.epsilons(dataset, role) if not math.isinf(epsilon)]

    def best(self, dataset: str, role: str, most: float = math.inf) -> Value | None:
        """The highest number of a role at finite epsilons up to `most`."""
        return highest(self.values[dataset, role, e] for e in self.finite(dataset, role) if e <= most)

    def pairs(
        self, left: str, right: str, datasets: Sequence[str] = (), at: Callable[[float], bool] = math.isfinite
    ) -> Iterator[tuple[str, Value, Value]]:
        """(name, left, right) wherever two roles have a number at one data set and epsilon that is wanted (finite)."""
        for (dataset, role, epsilon), value in self.values.items():
            other = self.get(dataset, right, epsilon)
            wanted = role == left and (not datasets or dataset in datasets) and at(epsilon)
            if wanted and other is not None:
                yield f"{dataset} {number(epsilon)}", value, other

    def of_role(self, *roles: str) -> list[Run]:
        """The runs in one of these roles, in order."""
        return [run for run in self.runs if run.role in roles]

    def of_any_size(self, role: str) -> list[Run]:
        """The runs in a role, including those on another number of records."""
        return [run for run in (*self.runs, *self.resized) if run.role == role]

    def in_order(self, role: str, wanted: Callable[[Run], bool] = lambda run: True) -> list[list[Run]]:
        """Lists of a role's runs in order, one per data set and epsilon."""
        return grouped(filter(wanted, self.of_role(role)), lambda run: (run.dataset, run.epsilon, run.n))


def places(scores: Scores, data: str, role: str | None = None) -> list[str]:
    """A data set with each backbone (of a role), in the order of the roles' lists."""
    runs = scores.runs if role is None else scores.of_role(role)
    return list(dict.fromkeys(run.dataset for run in runs if run.data == data))


def best_of(runs: Iterable[Run], key: Callable[[Run], tuple]) -> dict[tuple, Value]:
    """The best accuracy of the runs with each key, in order."""
    number_of = attrgetter("number")
    return {of: max((run.accuracy for run in same), key=number_of) for of, same in by_key(runs, key).items()}


def keeps(ledger: Mapping, epsilon: float) -> bool:
    """Whether a cell's guarantee is proved at no more than its finite epsilon."""
    return math.isinf(epsilon) or (ledger["guarantee"] == "proved" and ledger["epsilon"] <= epsilon)


def on_training(run: Run) -> Value | None:
    """A cell's accuracy on its training records; None where the study does not measure it."""
    return _over_seeds(run, lambda row: row[ON_TRAINING])


def gap(run: Run) -> Value | None:
    """The accuracy on training records minus that on the test split."""
    return _over_seeds(run, lambda row: row[ON_TRAINING] - row["top1"])


def _over_seeds(run: Run, of: Callable[[Mapping], float]) -> Value | None:
    rows = [row for row in run.metrics.get("seeds", ()) if ON_TRAINING in row]
    return value_of([of(row) for row in rows]) if rows else None


def value_of(numbers: Sequence[float], metric: str = "top1") -> Value:
    """The mean of a metric over seeds with its standard error, in percent."""
    scale = 1.0 if metric_of(metric).percent else 100.0
    mean, _, std = mean_median_std([scale * value for value in numbers])
    return Value(mean, std / math.sqrt(len(numbers)) if len(numbers) > 1 else None)


def printed_value(row: Mapping[str, str]) -> Value:
    """A printed number; its standard deviation over five runs gives a standard error, without one it is exact."""
    return Value(float(row["value"]), float(row["std"]) / math.sqrt(5) if row["std"] else 0.0)


accuracy: Callable[[Run], Value | None] = attrgetter("accuracy")


def up(groups: Iterable[Sequence[Run]], value: Callable[[Run], Value | None] = accuracy) -> Triples:
    """(name, later, earlier) for each pair of neighbours in lists of runs."""
    for group in groups:
        for earlier, later in pairwise(group):
            yield f"{later.at}, {later.entry}", value(later), value(earlier)


def curve_value(run: Run, epsilon: float) -> Value | None:
    """The accuracy of a run at the last point where it had spent at most `epsilon`; None before the first point."""
    within = [point for point in run.curve if point.spent is not None and point.spent <= epsilon]
    return within[-1].accuracy if within else None


@dataclass(frozen=True)
class Evidence:
    """The evidence for judging the claims of a paper.

    The paper's accuracies and ours, its rows of hyperparameters.csv and results.csv, what our accuracies are (areas
    under curves stand in percent, too), why other cells of ours are no evidence, a sentence each, and our accuracies at
    several sizes of the images (the order is one of sizes). Of mehta2023 all accuracies are a `Grid`.
    """

    printed: Any
    ours: Any
    hyperparameters: Sequence[Mapping[str, str]] = ()
    rows: Sequence[Mapping[str, str]] = ()
    metric: str = "top1"
    left_out: Sequence[str] = ()
    resolutions: Sequence[Any] = ()


_LEFT_OUT = 0.99  # of the records: what is left when matches of public images are left out


@dataclass(frozen=True)
class Printed:
    """The printed numbers of a paper with roles.

    Attributes:
        scores: from its rows of results.csv to its accuracies.
        records: data set -> numbers of records that the paper trains on.
        cited: roles of other authors' numbers, beside which our cells stand as well.
        fewest: data set -> the fewest records on which they do; none where it does not matter.
        by_backbone: whether each backbone (our features) on a data set counts as a data set of its own.
    """

    paper: str
    scores: Callable[[Sequence[Mapping[str, str]]], Scores]
    records: Mapping[str, tuple[int, ...]]
    cited: tuple[str, ...]
    fewest: Mapping[str, int] = field(default_factory=dict)
    by_backbone: bool = False

    def level(self, scores: Scores, dataset: str, value: Value | None) -> Value | None:
        """A printed number for comparison; None where our cells have too few records for it."""
        few = any(run.n < self.least(dataset) for run in scores.runs if run.dataset == dataset)
        return None if few else value

    def least(self, dataset: str) -> float:
        """The fewest records for comparison with printed numbers; those matching a public image may be left out."""
        return _LEFT_OUT * self.fewest.get(dataset, 0)
