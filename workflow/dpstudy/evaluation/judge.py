"""What a test split says beyond its mean scores: intervals, subgroups and single labels.

The records of the test split are public by assumption; nothing here adds noise.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from dpstudy.evaluation import weighted
from dpstudy.evaluation.groups import members
from dpstudy.evaluation.metric import against_rest
from dpstudy.evaluation.metrics import metric_of, ordered
from dpstudy.evaluation.wilson import wilson

LABEL = "label"  # the column that single labels stand under
FEWEST = 3  # records that bear a label, and as many that do not, for its area to count in a group


def judge(
    scores: np.ndarray,
    labels: np.ndarray,
    classes: Sequence[str],
    options: Mapping,
    columns: Mapping[str, np.ndarray] | None = None,
    subjects: np.ndarray | None = None,
) -> dict:
    """What metrics.json has of a seed besides its metrics.

    Args:
        scores, labels, classes: as of `evaluate.evaluate`.
        options: the config's `evaluation`: metrics, intervals (bootstrap samples, 0 for none: shares of records then
            have Wilson's interval unless one person has several of them, other metrics none), smallest_group,
            small_groups, per_label.
        columns: name -> (n,) strings: what records are grouped by.
        subjects: (n,) whose each record is: samples are drawn of persons then, and a group's size is told by them.

    Returns:
        {metric}_low and {metric}_high where there are intervals, and `groups` where there are groups: name (such as
        "sex=F", or "label=Effusion") -> {"n", metric, {metric}_low, {metric}_high}; n counts the group's records, of
        a label those that bear it. The groups of a column are compared on the same labels: an area is the mean over
        those that `FEWEST` records of each group bear and as many do not (of each group that has such labels). A metric
        that is not defined on a group is left out of it.
    """
    scores, labels = np.asarray(scores, np.float64), np.asarray(labels)
    count = options.get("intervals", 0)
    apart = subjects is None or len(np.unique(subjects.astype(str))) == len(subjects)
    samples = weighted.resamples(len(labels), count, subjects) if count else np.empty((0, len(labels)))
    weights = np.concatenate([np.ones((1, len(labels))), samples])
    metrics = [name for name in ordered(options["metrics"]) if metric_of(name).suits(labels, classes)]
    found = {
        f"{name}_{end}": value
        for name in metrics
        for end, value in _ends(
            name, metric_of(name).weighted(scores, labels, classes, weights), len(labels) if apart else 0
        )
    }
    groups: dict[str, dict[str, float]] = {}
    sizes = options["smallest_group"], options["small_groups"]
    for column, values in (columns or {}).items():
        masks = members({column: values}, *sizes, subjects)
        shared = _shared_labels(list(masks.values()), scores, labels, classes)
        for name, mask in masks.items():
            groups[name] = {"n": int(mask.sum())}
            for metric in metrics:
                under = metric_of(metric).weighted(scores[mask], labels[mask], classes, weights[:, mask], shared)
                groups[name] |= _entry(metric, under, int(mask.sum()) if apart else 0)
    if options.get("per_label"):
        groups |= _labels(scores, labels, classes, metrics, weights, options["smallest_group"], apart)
    return found | ({"groups": groups} if groups else {})


def _labels(
    scores, labels, classes: Sequence[str], metrics: list[str], weights: np.ndarray, smallest: int, apart: bool
) -> dict:
    """A group a label: its areas against all other records, and how many that bear it are classified rightly."""
    found = {}
    for number, name in enumerate(classes):
        member = labels[:, number] != 0 if labels.ndim == 2 else labels == number
        if member.sum() < smallest:
            continue
        entry: dict[str, float] = {"n": int(member.sum())}
        exclusive = labels.ndim == 1 and len(classes) == 2  # ranked by the difference, as in the mean over labels
        own = scores[:, number] - scores[:, 1 - number] if exclusive else scores[:, number]
        for metric in metrics:
            if (area := metric_of(metric).area) is not None:
                entry |= _entry(metric, area(own, member, weights))
            elif metric_of(metric).share:
                under = metric_of(metric).weighted(scores[member], labels[member], classes, weights[:, member])
                entry |= _entry(metric, under, int(member.sum()) if apart else 0)
        found[f"{LABEL}={name}"] = entry
    return found


def _shared_labels(masks: list[np.ndarray], scores, labels, classes: Sequence[str]) -> set[int]:
    """The labels that groups can be compared on, as places in `against_rest`."""
    bearers = [member for _, member in against_rest(scores, labels, classes)]
    enough = [{place for place, member in enumerate(bearers) if _told(member[mask])} for mask in masks]
    return set.intersection(*(own for own in enough if own)) if any(enough) else set()


def _told(member: np.ndarray) -> bool:
    return min(member.sum(), (~member).sum()) >= FEWEST


def _entry(name: str, values: np.ndarray, independent: int = 0) -> dict[str, float]:
    """A metric and its interval, from its value and those of the samples; see `_ends`."""
    if not np.isfinite(values[0]):
        return {}
    return {name: float(values[0])} | {f"{name}_{end}": value for end, value in _ends(name, values, independent)}


def _ends(name: str, values: np.ndarray, independent: int) -> list[tuple[str, float]]:
    """The ends of a metric's interval: from the samples, all values but the first, where there are any; else a share's,
    of as many `independent` records (0: they are not)."""
    found = None
    if len(values) > 1:
        found = weighted.interval(values[1:])
    elif metric_of(name).share and independent:
        low, high = wilson(float(values[0]) / 100, independent)
        found = 100 * low, 100 * high
    return [] if found is None else list(zip(("low", "high"), found, strict=True))
