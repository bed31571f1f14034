"""Accuracies of mehta2023, which compares methods, by (data set with pre-training, (method, epochs), epsilon)."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dpstudy.tables.claims.grid import Value, highest, number
from dpstudy.tables.claims.names import CLASSES
from dpstudy.tables.claims.scores import Run, Scores, best_of, keeps

PRETRAININGS = ("ImageNet-1k", "ImageNet-21k", "JFT-3B")  # from the least to the most
# Training records and classes of the paper's private data sets.
_RECORDS = {"CIFAR-10": 50_000, "CIFAR-100": 50_000, "ImageNet-1k": 1_281_167}
PRIVATE_SETS = {name: (records, CLASSES[name]) for name, records in _RECORDS.items()}
_DETAILED = ("2", "3", "4")
Row = tuple[str, int]  # (method, epochs)


class Place(NamedTuple):
    """A setting in which methods are compared: a data set with the features of one pre-training."""

    dataset: str
    pretraining: str

    def __str__(self) -> str:
        return f"{self.dataset}/{self.pretraining}"


@dataclass(frozen=True)
class Grid(Scores):
    """Accuracies by (place, (method, epochs), epsilon).

    Attributes:
        order: pre-trainings, from the least to the most.
    """

    order: tuple[str, ...] = ()

    @classmethod
    def of(cls, runs: Sequence[Run], order: tuple[str, ...]) -> "Grid":
        """The accuracies of the cells whose guarantee is proved; claims about settings look at all of them."""
        kept = [run for run in runs if keeps(run.ledger, run.epsilon)]
        values = best_of(kept, lambda run: (Place(run.data, run.backbone), (run.role, run.epochs), run.epsilon))
        return cls(values, runs, order=order)

    def at(self, dataset: str | None = None, pretraining: str | None = None) -> "Grid":
        """The part of the grid for one data set, or for one pre-training."""
        places = [p for p in self.datasets if dataset in (None, p.dataset) and pretraining in (None, p.pretraining)]
        kept = {key: value for key, value in self.values.items() if key[0] in places}
        return Grid(kept, self.runs, order=self.order)

    @property
    def budgets(self) -> list[float]:
        """The finite epsilons, ascending."""
        return sorted({key[2] for key in self.values if not math.isinf(key[2])})

    @property
    def rows(self) -> list[Row]:
        """The (method, epochs) pairs, in order."""
        return list(dict.fromkeys(key[1] for key in self.values))

    def cells(self, low: float = 0.0, high: float = math.inf) -> Iterator[tuple[str, Place, float]]:
        """(name, place, epsilon) for every place and finite epsilon in [low, high)."""
        for place in self.datasets:
            for epsilon in self.budgets:
                if low <= epsilon < high:
                    yield f"{place} at {number(epsilon)}", place, epsilon

    def _at(self, place: Place, epsilon: float) -> dict[Row, Value]:
        return {row: value for (where, row, at), value in self.values.items() if (where, at) == (place, epsilon)}

    def best_of(
        self, place: Place, epsilon: float, methods: Iterable[str] | None = None, without: Iterable[Row] = ()
    ) -> Value | None:
        """The highest value of some methods over their epochs, or a bound where there is no number.

        None where one of several methods was not run: the best of the others may be no best.
        """
        rows = {row: value for row, value in self._at(place, epsilon).items() if row not in without}
        if methods is not None:
            rows = {row: value for row, value in rows.items() if row[0] in methods}
            if set(methods) - {method for method, _ in rows}:
                return None
        return highest(rows.values()) or next(iter(rows.values()), None)

    def leading(self, place: Place, epsilon: float, rows: Iterable[Row]) -> tuple[Value | None, Value | None]:
        """(highest number of some (method, epochs) rows, best of all others): whether these rows are the best.

        No best of the others where a method of the grid was not run: it could be the best.
        """
        whole = {method for method, _ in self._at(place, epsilon)} == {method for method, _ in self.rows}
        others = self.best_of(place, epsilon, without=rows) if whole else None
        return highest(self.get(place, row, epsilon) for row in rows), others


def printed_scores(rows: Iterable[Mapping[str, str]]) -> Grid:
    """The accuracies printed in Tables 2-4; a cell without a number is printed as at most 20 %."""
    values = {}
    for row in rows:
        if row["table"] in _DETAILED:
            method = row["method"], int(row["epochs"])
            value = Value(float(row["value"])) if row["value"] else Value(None, None, at_most=20.0)
            values[Place(row["dataset"], row["pretraining"]), method, float(row["epsilon"])] = value
    return Grid(values, order=PRETRAININGS)
