"""95 % confidence intervals of metrics over test records or subjects, computed in one way throughout.

A metric is the mean of parts: of one share, of an area for each label, of a share of each class. With r of a part the
variance of its value p over p(1 - p), 1/r is its *effective number* of independent records, and the part's interval is
Wilson's of that number. r is

    (nu r_data + k r_model)/(nu + k),    nu = the persons on its smaller side - 1,

where r_data is the variance over bootstrap samples of persons (of a share: over persons, by linearisation), and r_model
what independent persons would give: of an area under the ROC curve the formula of Hanley and McNeil (1982), with the
mean of both sides in place of each as Newcombe (2006, method 5) has it; of another area, twice the persons who bear the
label; of a share, its persons. Where r_data says nothing, at a value of 0 or 1, r is r_model. The quantile is Student's
of nu + k degrees of freedom, joined over parts by Satterthwaite's formula. The lower ends of parts give that of their
mean: the squares of their distances from the values add up with the correlation that the parts have over samples
(MOVER, Zou and Donner 2008), and so do the upper ones. An average precision of few records is too high on average: its
interval is that of the value less one time, and two and a half times, what its samples lie above it, and holds the
value. k and these two were chosen by measuring.

Percentiles of the samples cover too little where one side has few persons: the samples' spread is too small by a factor
of (c - 1)/c, leans to the side, and is nothing at an area of 1. `python -m benchmarks intervals` measures coverage and
length; docs/limits.md has them. Where a side has fewer than FEWEST persons, no interval is given.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpstudy.evaluation.metric import Metric
from dpstudy.evaluation.wilson import Z, wilson

FEWEST = 5  # persons with a label, and without; records where their persons are not known
_OF_AREAS, _OF_SHARES = 3.0, 2.0  # degrees of freedom that the model counts for (k)
_SHIFTS = 1.0, 2.5  # by so many times what samples lie above the value an average precision is too high (measured)


@dataclass(frozen=True)
class Part:
    """One of the component values that a metric averages, such as one label's area.

    Attributes:
        value: of the split itself, from 0 to 1.
        samples: (R,) of the bootstrap samples, NaN where it is not defined there; (0,) for none.
        persons: on its smaller side.
        independent: 1/r_model, the effective number of its records if persons were independent.
        modelled: k; 0 where the model only serves at 0 and 1.
        freedom: degrees of freedom of its variance; infinite where it is known.
        variance: of `value`, where it is known without samples.
        biased: the samples tell by how much it is too high, or too low, on average.
    """

    value: float
    samples: np.ndarray
    persons: int
    independent: float
    modelled: float
    freedom: float
    variance: float | None = None
    biased: bool = False

    @property
    def spread(self) -> float | None:
        """The variance of the value; None where the bootstrap samples cannot tell."""
        if self.variance is not None:
            return self.variance
        known = self._known
        return float(np.var(known, ddof=1)) if len(known) > 1 and 2 * len(known) >= len(self.samples) else None

    @property
    def _known(self) -> np.ndarray:
        return self.samples[np.isfinite(self.samples)]

    @property
    def ratio(self) -> float:
        """r, the variance of the value divided by p(1 - p)."""
        model, known, spread = 1 / self.independent, self.value * (1 - self.value), self.spread or 0.0
        if math.isinf(self.freedom) or known <= 0 or spread <= 0:
            return model
        unmodelled = self.freedom - self.modelled
        return (unmodelled * spread / known + self.modelled * model) / self.freedom

    def shifted(self, times: float) -> float:
        """The value corrected by `times` its bootstrap bias."""
        if not self.biased:
            return self.value
        return min(1.0, max(0.0, self.value - times * (float(np.mean(self._known)) - self.value)))


def interval(parts: Sequence[Part]) -> tuple[float, float] | None:
    """The confidence interval of the mean of parts; it contains that mean.

    Returns:
        (low, high), from 0 to 1; None where a part has fewer than FEWEST persons on a side, or where more than half of
        the samples do not define all parts.
    """
    if not parts or min(part.persons for part in parts) < FEWEST or any(part.spread is None for part in parts):
        return None
    alike = _correlation(parts)
    if alike is None:
        return None
    variances = np.array([part.ratio * max(part.value * (1 - part.value), 1 / part.independent) for part in parts])
    of_each = variances**2 / [part.freedom for part in parts]
    quantile = _quantile(variances.sum() ** 2 / of_each.sum() if of_each.any() else math.inf)
    value, ends = float(np.mean([part.value for part in parts])), []
    for times in _SHIFTS:
        values = np.array([part.shifted(times) for part in parts])
        ranges = np.array([wilson(each, 1 / part.ratio, quantile) for each, part in zip(values, parts, strict=True)]).T
        below, above = (
            math.sqrt(max(0.0, side @ alike @ side)) / len(parts) for side in (values - ranges[0], ranges[1] - values)
        )
        ends.append((float(values.mean()) - below, float(values.mean()) + above))
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return max(0.0, min(value, low)), min(1.0, max(value, high))


def _correlation(parts: Sequence[Part]) -> np.ndarray | None:
    """(parts, parts) over samples; parts without samples, or which do not vary over them, are independent."""
    correlation = np.eye(len(parts))
    moving = [number for number, part in enumerate(parts) if len(part.samples) and part.spread]
    if len(moving) > 1:
        samples = np.array([parts[number].samples for number in moving])
        known = samples[:, np.isfinite(samples).all(0)]
        if 2 * known.shape[1] < samples.shape[1]:
            return None
        with np.errstate(invalid="ignore"):
            correlation[np.ix_(moving, moving)] = np.nan_to_num(np.corrcoef(known))
        np.fill_diagonal(correlation, 1.0)
    return correlation


def _quantile(freedom: float) -> float:
    from scipy.special import stdtrit  # for studies that ask for intervals

    return Z if math.isinf(freedom) else float(stdtrit(freedom, 0.975))


def parts_of(
    metric: Metric,
    scores: np.ndarray,
    labels: np.ndarray,
    classes: Sequence[str],
    weights: np.ndarray,
    persons: np.ndarray,
    counted: set[int] | None = None,
) -> list[Part]:
    """The parts of a metric that are defined on a split; none where the metric is not defined.

    Args:
        scores, labels, classes, counted: as of `Metric.weighted`.
        weights: (1 + R, n): ones, and of bootstrap samples.
        persons: (n,) integers: whose each record is.
    """
    parts: list[Part] = []
    for values, member, within in metric.parts(scores, labels, classes, weights, counted):
        shown = (values / 100 if metric.percent else values).astype(np.float64)
        who = persons if within is None else persons[within]
        if not np.isfinite(shown[0]):
            continue
        if member is not None:
            parts.append(area_part(metric, shown, member, who))
        elif metric.right is not None:
            rows = slice(None) if within is None else within
            parts.append(share_part(metric.right(scores[rows], labels[rows]), who))
        else:
            count = len(np.unique(who))
            parts.append(Part(float(shown[0]), shown[1:], count, count, 0.0, max(1, count - 1), biased=True))
    return parts


def area_part(metric: Metric, values: np.ndarray, member: np.ndarray, persons: np.ndarray) -> Part:
    """The part of one label's area, from its value on the split and on the bootstrap samples."""
    sides = len(np.unique(persons[member])), len(np.unique(persons[~member]))
    value, fewer, model = float(values[0]), min(sides), metric.independent
    if model is None:
        bearers, freedom = max(1, 2 * sides[0]), max(1, fewer - 1) + _OF_AREAS
        return Part(value, values[1:], fewer, bearers, _OF_AREAS, freedom, biased=True)
    independent = model(value, *sides) if fewer else 1.0
    return Part(value, values[1:], fewer, independent, _OF_AREAS, max(1, fewer - 1) + _OF_AREAS)


def share_part(right: np.ndarray, persons: np.ndarray) -> Part:
    """The part of a proportion of records: `right` (n,) booleans.

    Persons who have more records than others count for more: as many alike as n^2 / sum of squares would say as much.
    """
    value, number = float(np.mean(right)), np.unique(persons, return_inverse=True)[1]
    each = np.bincount(number)
    count, none = len(each), np.empty(0)
    if count == len(right):
        return Part(value, none, count, count, 0.0, math.inf, value * (1 - value) / count)
    alike = max(2.0, len(right) ** 2 / float((each**2).sum()))
    off = np.bincount(number, right - value)
    variance = float((off**2).sum()) / len(right) ** 2 * alike / (alike - 1)
    return Part(value, none, count, count, _OF_SHARES, alike - 1 + _OF_SHARES, variance)
