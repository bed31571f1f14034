"""The interface of metrics: an object with its name, its requirements, and its value under any record weights.

A metric stands in a file of its own (`dpstudy.evaluation.metrics`), as the object METRIC. Its value on a split is that
at weights of one, and a bootstrap's are those at how often each record was drawn: one definition for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpstudy.core.errors import StudyError

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric of a classifier.

    Attributes:
        order: its place among the columns and rows of every output.
        label: what a table or an axis calls it.
        percent: whether it is in percent; else it is a fraction between 0 and 1.
        lower_is_better: which of two values tables call the better one, and what a search may not have: it maximises.
        records: (scores (n, m), labels (n,), weights (R, n)) -> (R,); of data with one label a record.
        area: (scores (n,), members (n,) booleans, weights (R, n)) -> (R,) of one label against the rest; the metric is
            then the mean over labels. One of `records` and `area`, or none `on_training`.
        point: (members, scores) -> `area` at weights of one, by other arithmetic; where a library's last bits are those
            of what was published.
        right: (scores, labels) -> (n,) booleans, of a metric that is the share of records which are: `records` need not
            be given, and its interval takes no bootstrap.
        probabilities: whether `records` takes scores for log odds, and labels (n, m) of zeros and ones too.
        by_class: whether `records` is the mean over the classes that occur of what it is on the records of each.
        independent: (value, persons that bear a label, persons that do not) -> how many independent records of a share
            would leave as much open as an `area` of these does; None: what samples tell.
        more_than: so many classes leave nothing to measure.
        chance: number of classes -> what guessing evenly at random has on average; None: nobody knows.
        ceiling: whether the noise of a cell sets it a ceiling (`dpstudy.tables.ceiling`).
        on_training: whether it is of the training records, measured where these are (`on_training.py`).
        hub: its name on the Hugging Face Hub, for model cards; "" for none.
    """

    order: int
    label: str
    percent: bool
    lower_is_better: bool = False
    records: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None
    area: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None
    point: Callable[[np.ndarray, np.ndarray], float] | None = None
    right: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    probabilities: bool = False
    by_class: bool = False
    independent: Callable[[float, int, int], float] | None = None
    more_than: int = 0
    chance: Callable[[int], float] | None = None
    ceiling: bool = False
    on_training: bool = False
    hub: str = ""

    def merit(self, value: float) -> float:
        """The value with the sign that makes larger better."""
        return -value if self.lower_is_better else value

    def suits(self, labels: np.ndarray, classes: Sequence[str]) -> bool:
        """Whether the metric is computed on a test split with such labels."""
        enough = not self.on_training and len(classes) > self.more_than
        return enough and (self.area is not None or self.probabilities or labels.ndim == 1)

    def defined(self, labels: np.ndarray, classes: Sequence[str]) -> bool:
        """Whether records with such labels give it a value: of an area, some must bear a label that others do not."""
        import numpy as np

        pairs = against_rest(np.zeros((len(labels), len(classes))), labels, classes) if self.area else ()
        return self.area is None or any(0 < member.sum() < len(labels) for _, member in pairs)

    def weighted(
        self,
        scores: np.ndarray,
        labels: np.ndarray,
        classes: Sequence[str],
        weights: np.ndarray,
        counted: set[int] | None = None,
    ) -> np.ndarray:
        """(R,) values of the metric under (R, n) weights of the records; NaN where it is not defined.

        Args:
            scores: (n, m) a score per record and class; the larger, the likelier.
            labels: (n,) class indices, or (n, m) zeros and ones.
            counted: the labels (of an area, places in `against_rest`; by class, numbers of classes) that a mean is
                over; None: all.
        """
        import numpy as np

        parts = [values for values, _, _ in self.parts(scores, labels, classes, weights, counted)]
        return mean_of_defined(parts or [np.full(len(weights), np.nan)])

    def parts(
        self,
        scores: np.ndarray,
        labels: np.ndarray,
        classes: Sequence[str],
        weights: np.ndarray,
        counted: set[int] | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None, np.ndarray | None]]:
        """The parts that the metric averages, where defined: (R,) values, (n,) bearers of the label, (n,) records used.

        The second is given for areas, the third for parts that are of one class's records.

        Args: as of `weighted`.
        """
        import numpy as np

        if self.area is not None:
            for place, (score, member) in enumerate(against_rest(scores, labels, classes)):
                if counted is None or place in counted:
                    yield self.area(score, member, weights), member, None
        elif self.by_class:
            for label in np.unique(labels):
                if counted is None or int(label) in counted:
                    within = labels == label
                    yield self._of_records(scores[within], labels[within], weights[:, within]), None, within
        else:
            yield self._of_records(scores, labels, weights), None, None

    def _of_records(self, scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if self.right is None:
            assert self.records is not None, "a metric of training records has no value here"
            return self.records(scores, labels, weights)
        from dpstudy.evaluation.weighted import mean  # late: it imports NumPy, which planning a study does without

        return mean(self.right(scores, labels), weights) * (100 if self.percent else 1)

    def value(self, scores: np.ndarray, labels: np.ndarray, classes: Sequence[str]) -> float:
        """The metric's value on a split.

        Raises:
            StudyError: of an area, no label that some records bear and others do not.
        """
        import numpy as np

        if self.area is None:
            return float(self.weighted(scores, labels, classes, np.ones((1, len(scores))))[0])
        pairs = [pair for pair in against_rest(scores, labels, classes) if 0 < pair[1].sum() < len(scores)]
        if not pairs:
            raise StudyError("needs a class that some records of the split have and others do not")
        if self.point is None:
            return float(np.mean([self.area(score, member, np.ones((1, len(score))))[0] for score, member in pairs]))
        return float(np.mean([self.point(member, score) for score, member in pairs]))


def against_rest(
    scores: np.ndarray, labels: np.ndarray, classes: Sequence[str]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(scores, members) of each label against the rest; for two exclusive classes a single pair."""
    if labels.ndim == 1 and len(classes) == 2:
        yield scores[:, 1] - scores[:, 0], labels == 1
        return
    for number in range(len(classes)):
        yield scores[:, number], labels[:, number] != 0 if labels.ndim == 2 else labels == number


def mean_of_defined(parts: list[np.ndarray]) -> np.ndarray:
    """The mean over the parts that are defined on the split itself, the first value of each part.

    It is NaN in a bootstrap sample that lacks one of these, where the mean of the others would be another quantity.
    """
    import numpy as np

    known = np.array(parts)
    defined = known[np.isfinite(known[:, 0])]
    return defined.mean(0) if len(defined) else np.full(known.shape[1], np.nan)
