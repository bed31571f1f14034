"""The file curves.csv: accuracy of private models on public images by number of records and epsilon.

A line is a mean over draws of records and noise. `share` is what of a model's gain over guessing survives: its metric
above chance, over that of the best model without noise on as many records.
"""

import csv
import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import get_type_hints

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.csv_file import write_csv

OURS = Path(__file__).with_name("curves.csv")
CLASSES, ONE, SEVERAL = "classes", "one", "several"
TASKS = (CLASSES, ONE, SEVERAL)  # a class for each record; a finding or none; of several findings some
# The settings that curves are measured with, where they are not a method's own: of several findings.
OF_SEVERAL = {"feature_covariance": {"loss": "sigmoid", "clipping_norm": 0.1}}


@dataclass(frozen=True)
class Point:
    """One line of curves.csv.

    Attributes:
        dataset, features: what was learned from; `dim` features a record.
        task: one of TASKS.
        classes: how many there are, or findings.
        prevalence: the share of records that bear a finding, the mean over findings; of classes one over their number.
        n: records.
        epsilon, delta: of the model.
        method: as entries have it.
        metric: top1 (percent) of classes, else auc (a fraction).
        value, chance, best: of the model, of guessing, and of the best method without noise on as many records.
        draws: how many the means are over.
    """

    dataset: str
    features: str
    dim: int
    task: str
    classes: int
    prevalence: float
    n: int
    epsilon: float
    delta: float
    method: str
    metric: str
    value: float
    chance: float
    best: float
    draws: int

    @property
    def share(self) -> float:
        """The share of the gain over guessing that the private model keeps, in [0, 1]."""
        gain = self.best - self.chance
        return min(1.0, max(0.0, (self.value - self.chance) / gain)) if gain > 0 else 0.0


def write(points: Sequence[Point], path: Path) -> None:
    """Write the points to a file, sorted."""
    in_order = sorted(points, key=operator.attrgetter("dataset", "task", "method", "n", "epsilon"))
    write_csv(path, _COLUMNS, [[_told(getattr(point, name)) for name in _COLUMNS] for point in in_order])


def _told(value: object) -> object:
    return f"{value:.5g}" if isinstance(value, float) else value


def read(path: Path = OURS) -> list[Point]:
    """The points in a file; by default those shipped with the library.

    Raises:
        StudyError: it is missing or damaged.
    """
    kinds = get_type_hints(Point)
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return [Point(**{key: kind(row[key]) for key, kind in kinds.items()}) for row in csv.DictReader(file)]
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file; `dpstudy curves` makes it") from None
    except (KeyError, ValueError, TypeError) as error:
        raise StudyError(f"{path}: is no file of curves ({type(error).__name__}: {error}); restore it") from None


_COLUMNS = [field.name for field in fields(Point)]
