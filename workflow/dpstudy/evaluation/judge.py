"""Further evaluation on a test split: confidence intervals, subgroups and single labels.

The records of the test split are public by assumption; nothing here adds noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpstudy.evaluation import weighted
from dpstudy.evaluation.groups import members
from dpstudy.evaluation.intervals import area_part, interval, parts_of
from dpstudy.evaluation.metric import Metric, against_rest
from dpstudy.evaluation.metrics import metric_of, ordered

LABEL = "label"  # the column that single labels stand under
FEWEST = 3  # persons that bear a label, and for an area as many that do not, for it to count in a group


def judge(
    scores: np.ndarray,
    labels: np.ndarray,
    classes: Sequence[str],
    options: Mapping,
    columns: Mapping[str, np.ndarray] | None = None,
    subjects: np.ndarray | None = None,
) -> dict:
    """A seed's entries of metrics.json besides its metrics: intervals and subgroups.

    Args:
        scores, labels, classes: as of `evaluate.evaluate`.
        options: the config's `evaluation`: metrics, intervals (bootstrap samples, 0 for none: metrics that are shares
            of records have intervals then, and no others), smallest_group, small_groups, per_label.
        columns: name -> (n,) strings: what records are grouped by.
        subjects: (n,) whose each record is: samples are drawn of persons then, and sizes are told by them.

    Returns:
        {metric}_low and {metric}_high where there are intervals (intervals.py), and `groups` where there are groups:
        name (such as "sex=F", or "label=Effusion") -> {"n", metric, {metric}_low, {metric}_high}; n counts the group's
        records, of a label those that bear it. The groups of a column are compared on the same labels: an area is the
        mean over those that `FEWEST` persons of each group bear and as many do not (of each group that has such
        labels), a mean over classes that over those which `FEWEST` persons of each have. Where that leaves out labels
        of the split, the group without a name ("sex=") has the metric of the whole split on the same labels. A metric
        that is not defined on a group is left out of it.
    """
    scores, labels = np.asarray(scores, np.float64), np.asarray(labels)
    count = options.get("intervals", 0)
    samples = weighted.resamples(len(labels), count, subjects) if count else np.empty((0, len(labels)))
    persons = np.arange(len(labels)) if subjects is None else np.unique(subjects.astype(str), return_inverse=True)[1]
    split = _Split(scores, labels, classes, np.concatenate([np.ones((1, len(labels))), samples]), persons)
    kinds = {name: metric_of(name) for name in ordered(options["metrics"])}
    named = {name: kind for name, kind in kinds.items() if kind.suits(labels, classes)}
    entries = [(name, split.entry(name, kind)) for name, kind in named.items()]
    ends: dict = {key: value for name, entry in entries for key, value in entry.items() if key != name}
    groups: dict[str, dict[str, float]] = {}
    sizes = options["smallest_group"], options["small_groups"]
    for column, values in (columns or {}).items():
        masks = members({column: values}, *sizes, subjects)
        whole: dict[str, float] = {}
        for metric, kind in named.items():
            bearers = _bearers(kind, split)
            shared = _shared_labels(kind, bearers, list(masks.values()), split) if bearers else None
            for name, mask in masks.items():
                groups.setdefault(name, {"n": int(mask.sum())})
                groups[name] |= split.of(mask).entry(metric, kind, shared)
            if shared and len(shared) < len(bearers):
                whole |= split.entry(metric, kind, shared)
        if whole:
            groups[f"{column}="] = {"n": len(labels)} | whole
    if options.get("per_label"):
        groups |= _labels(split, named, options["smallest_group"])
    return ends | ({"groups": groups} if groups else {})


@dataclass(frozen=True)
class _Split:
    """Test records, or some of them, with their weights (1 + R, n) and whose they are."""

    scores: np.ndarray
    labels: np.ndarray
    classes: Sequence[str]
    weights: np.ndarray
    persons: np.ndarray

    def of(self, mask: np.ndarray) -> "_Split":
        """The records of a mask."""
        return _Split(self.scores[mask], self.labels[mask], self.classes, self.weights[:, mask], self.persons[mask])

    def entry(self, name: str, metric: Metric, counted: set[int] | None = None) -> dict[str, float]:
        """A metric and its interval; nothing where it is not defined."""
        values = metric.weighted(self.scores, self.labels, self.classes, self.weights[:1], counted)
        sampled = len(self.weights) > 1 or metric.right is not None
        of = self.scores, self.labels, self.classes, self.weights, self.persons
        parts = parts_of(metric, *of, counted) if sampled else []
        return _entry(name, metric, float(values[0]), interval(parts))

    def size(self, mask: np.ndarray) -> int:
        """How many persons, or records where nobody knows whose they are, a mask has."""
        return len(np.unique(self.persons[mask]))


def _labels(split: _Split, metrics: Mapping[str, Metric], smallest: int) -> dict:
    """A group a label: its areas against all other records, and how many that bear it are classified rightly."""
    groups, labels, scores = {}, split.labels, split.scores
    for number, name in enumerate(split.classes):
        member = labels[:, number] != 0 if labels.ndim == 2 else labels == number
        if split.size(member) < smallest:
            continue
        entry: dict[str, float] = {"n": int(member.sum())}
        exclusive = labels.ndim == 1 and len(split.classes) == 2  # ranked by the difference, as in the mean over labels
        label_scores = scores[:, number] - scores[:, 1 - number] if exclusive else scores[:, number]
        for metric, kind in metrics.items():
            if kind.area is not None:
                values = kind.area(label_scores, member, split.weights)
                if np.isfinite(values[0]):
                    parts = [area_part(kind, values, member, split.persons)] if len(values) > 1 else []
                    entry |= _entry(metric, kind, float(values[0]), interval(parts))
            elif kind.right is not None and not kind.by_class:
                entry |= split.of(member).entry(metric, kind)
        groups[f"{LABEL}={name}"] = entry
    return groups


def _bearers(metric: Metric, split: _Split) -> dict[int, np.ndarray]:
    """The labels that a metric is the mean over (as of `Metric.weighted`): who bears each; empty for another metric."""
    if metric.area is not None:
        pairs = against_rest(split.scores, split.labels, split.classes)
        return {place: member for place, (_, member) in enumerate(pairs) if member.any() and not member.all()}
    return {int(label): split.labels == label for label in np.unique(split.labels)} if metric.by_class else {}


def _shared_labels(
    metric: Metric, bearers: Mapping[int, np.ndarray], masks: list[np.ndarray], split: _Split
) -> set[int]:
    """Those of a metric's labels that groups can be compared on."""

    def told(member: np.ndarray, mask: np.ndarray) -> bool:
        others = split.size(~member & mask) if metric.area is not None else FEWEST
        return min(split.size(member & mask), others) >= FEWEST

    enough = [{place for place, member in bearers.items() if told(member, mask)} for mask in masks]
    return set.intersection(*(comparable for comparable in enough if comparable)) if any(enough) else set()


def _entry(name: str, metric: Metric, value: float, ends: tuple[float, float] | None) -> dict[str, float]:
    """A metric and its interval (from 0 to 1), where it has one; nothing where it is not defined."""
    if not np.isfinite(value):
        return {}
    unit = 100 if metric.percent else 1
    low, high = ends or (0.0, 0.0)
    shown = {f"{name}_low": min(value, unit * low), f"{name}_high": max(value, unit * high)}
    return {name: value} | (shown if ends else {})
