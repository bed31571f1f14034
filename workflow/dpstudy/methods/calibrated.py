"""Calibrated probabilities from a model's scores, for a share of the privacy budget.

Scores rank; what they are worth as probabilities is no method's aim. Beside a method's own releases there are a few
sums over the training records, of each record's scores by the model that was released, so that the softmax (where
records may have several labels, the sigmoid of each) of `slope * score + offset` says how often a class is right:

    1. `calibration_scale`: how many records have scores of which size, by powers of two. A record is in one bin, so
       the counts' sensitivity is 1.
    2. `calibration`, `_QUERIES` times: the sum of (p - y, t) over records, for the present probabilities p and labels y
       with at most k ones. |p - y| <= sqrt(2) where one label is borne, since then both lie in the simplex; else a
       record's vector is clipped to b = sqrt(min(m, k + 1)). t tells whether probabilities are too bold: with one label
       a record it is the largest probability less whether its class is right, at most 1; with several, (p - y) times
       +1 or -1 (between, where near) as a label's odds are above or below its average ones, over sqrt(m), at most b.
       Hence the sensitivities sqrt(2 + 1) and sqrt(2) b. The first time p and t are zero: the sum counts
       the classes.
    A unit of r records changes either by r times that at most, by that alone where its records are averaged
    (averaging.py). All releases are Gaussian, and compose with the method's
    own; everything after them is post-processing.
The offsets move by Newton's step for the log loss, whose second derivative mean p(1 - p) is at most that of the mean p,
which `p - y` and the counts tell; the slope moves until probabilities are as large as they are right. Of each sum what
its known noise may explain is taken away, so that of few records all stays where it was.

On training records a model may look better than it is; where its noise keeps it from learning them by heart that is
little. Normal densities of each class's scores, which need one release and no steps, were overconfident by 7 to 20
percent of records on features of a real network even without noise.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.methods import operating_points
from dpstudy.methods.averaging import weighted
from dpstudy.methods.exact import BELOW, sigmoid, softmax, truncated
from dpstudy.methods.labels import checked_labels, one_hot
from dpstudy.methods.operating_points import NAME as POINTS
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.models.alone import scores_alone
from dpstudy.models.operating_points import with_counts
from dpstudy.models.probabilities import calibrated
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import spelled
from dpstudy.privacy.calibration import calibrate
from dpstudy.privacy.events import Event, unproved
from dpstudy.privacy.gaussian import composed_mu, epsilon_of, mu_of
from dpstudy.privacy.noise import NoiseSource

_log = logging.getLogger("dpstudy")
SCALE, ASKED = "calibration_scale", "calibration"
LEAST = 30.0  # least n mu of these releases: below it, noise hides how often even a fair model is right
_QUERIES, _SCALE_SHARE = 5, 0.15
_EXPONENTS = 20  # the histogram of score norms reaches from 2^-20 to 2^20
_STANDS_OUT = 4.5  # noise standard deviations that a count must exceed: few empty bins in a million do
_SMALL, _LARGE = 2.0, 16.0  # bounds for the largest logits that many records have, at the initial slope
_RARE, _FAR_OFF = 1e-6, 3.0
_LITTLE, _MUCH = 0.02, 0.3  # least share of mu^2 for a calibration, and the most that "auto" gives it
_SLIGHTLY_LESS = 1 - 1e-9  # keeps the certified epsilon, rounded, at or below the target
_MORE = 1.25  # largest factor on its share of mu, as sampled batches compose with it to less than the target
_GRID = 2.0**-20  # grid of contributions, coarse enough for exact sums over all records that there may be
_LONGEST_STEP, _SLOWNESS = 1.5, 0.25
_LEAST_ODDS = 1e-3  # lower bound on a class's share, and on its variance
_STEEP = 8.0  # a label's factor on p - y in t is +1 or -1 where its log odds are 1/8 from average
_BLOCK, _FAR = 4096, 500.0


class Calibrated:
    """A method wrapped so that a share of its budget pays for the calibration of its model's scores.

    Args:
        method: the module, or what stands for it.
        share: of mu^2, in (0, 1), or "auto": as much as it takes, and at least _LITTLE.
        rows: gives the training records anew at each call, as (features, labels) batches.
        thresholds: release counts too, of which thresholds are read off (operating_points.py): with that share of
            mu^2, or True.

    Attributes:
        own: the method's own problem, of less budget, and its plan; once it is planned.
    """

    def __init__(
        self,
        method: ModuleType,
        share: float | str,
        rows: Callable[[], Iterable[tuple[np.ndarray, np.ndarray]]],
        thresholds: bool | float = False,
    ):
        self._method, self._share, self._rows, self._thresholds = method, share, rows, thresholds
        self.own: tuple[Problem, Plan] | None = None

    def __getattr__(self, name: str):
        """Any other attribute of the method; `spent` is given the plan of the method without the calibration."""
        attribute = getattr(self._method, name)
        return self._spent if name == "spent" else attribute

    def plan(self, parameters, problem: Problem) -> Plan:
        """The method's releases at the rest of the budget, and the calibration's releases.

        Whether there are enough records for a calibration, `check_enough` says.

        Raises:
            StudyError: as of the method.
        """
        budget, share = problem.budget, share_of(problem, self._share)
        asked = operating_points.share_of(problem, self._thresholds)
        if share + asked >= 1:
            raise StudyError("calibration and thresholds take all of the budget; lower their shares")
        if not (problem.noised and share):
            self.own = problem, self._method.plan(parameters, problem)
            return self.own[1]
        mu = mu_of(budget.target, budget.delta)
        left = epsilon_of(mu * math.sqrt(1 - share - asked), budget.delta)
        less = dataclasses.replace(budget, epsilon=spelled(left))
        poorer = dataclasses.replace(problem, budget=less)
        self.own = poorer, (planned := self._method.plan(parameters, poorer))
        events = _beside(planned.events, mu, (share, asked), problem)
        return dataclasses.replace(
            planned,
            events=(*planned.events, *events),
            noise={**planned.noise, **{event.name: event.deviation for event in events}},
            facts={**planned.facts, **{f"noise_multiplier_{e.name}": e.noise_multiplier for e in events}},
        )

    def fit(self, data, parameters, problem: Problem, plan: Plan, source: NoiseSource, **beside) -> Fit:
        """The method's model, with the slope and offsets of a private calibration of its scores.

        Raises:
            StudyError: as of the method; or its model cannot be calibrated.
        """
        fitted = self.train(data, parameters, source, **beside)
        if problem.noised and not share_of(problem, self._share):
            _log.warning("calibration: auto: too few units, so that scores are not calibrated, and only rank")
            return fitted
        scores, labels, weights = self._scored(fitted.model, problem)
        slope, offsets, shares, noise = calibrate_scores((scores, labels, weights), problem, plan, source)
        model = calibrated(fitted.model, slope, offsets, shares, noise)
        if self._thresholds and (asked := plan.noise.get(POINTS, 0.0 if not plan.events else None)) is not None:
            with np.errstate(all="ignore"):  # a warning would reveal something about a private record
                scores = (slope * scores.astype(np.float64) + offsets).astype(np.float32)
                total = operating_points.counted(scores, labels, weights, problem)
            counts = released(POINTS, total, asked, source)
            model = with_counts(model, counts, asked)
        elif self._thresholds:
            _log.warning("thresholds: too few units, so that no threshold can be told; leave `thresholds` out")
        return dataclasses.replace(fitted, model=model)

    def prepare(self, batches, parameters, problem: Problem, **beside):
        """The method's prepared training data."""
        return self._method.prepare(batches, parameters, self._owned()[0], **beside)

    def train(self, data, parameters, source: NoiseSource, **beside) -> Fit:
        """The method's model without calibration: the part that every process of a shared training computes."""
        return self._method.fit(data, parameters, *self._owned(), source, **beside)

    def _owned(self) -> tuple[Problem, Plan]:
        assert self.own is not None, "it is planned first"
        return self.own

    def _spent(self, plan: Plan, step: int):
        return self._method.spent(self._owned()[1], step)

    def _scored(self, model, problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n, m) scores of the training records, with labels and weights, without records whose scores are not finite.

        Exact sums need scores that are those of a record alone, whatever stands beside it.
        """
        scored, checked, shares = [], [], []
        for features, labels, weights in weighted(self._rows(), problem.averaged):
            shares.append(np.ones(len(labels)) if weights is None else weights)
            checked.append(checked_labels(labels, problem.classes, problem.positives))
            with np.errstate(all="ignore"):  # a warning would reveal something about a private record
                scored.append(scores_alone(model, features) if problem.exact else model.scores(features))
        scores, labels, weights = (np.concatenate(each) for each in (scored, checked, shares))
        usable = np.isfinite(scores).all(1)
        return scores[usable], labels[usable], weights[usable]


def _beside(own: tuple[Event, ...], mu: float, shares: tuple[float, float], problem: Problem) -> tuple[Event, ...]:
    """The events of the calibration and of thresholds, so large that with the method's events they spend the budget.

    They do where the method's events are within the budget and were planned to spend the rest of it; what a given
    noise multiplier leaves over is left.

    Args:
        shares: of mu^2, of the two.
    """

    def of(spent: float) -> tuple[Event, ...]:
        parts = [spent * math.sqrt(share / sum(shares)) for share in shares]
        return *releases(problem, parts[0]), *([operating_points.event(problem, parts[1])] if shares[1] else [])

    budget, share = problem.budget, mu * math.sqrt(sum(shares))
    apart = budget.accounting != "certified" or unproved(own) or certify(own, budget.delta).epsilon > budget.target
    if not own or apart:
        return of(share)
    if all(event.mechanism == "gaussian" and event.sampling == "none" for event in own):
        return of(min(share * _MORE, math.sqrt(mu**2 - composed_mu(own) ** 2) * _SLIGHTLY_LESS))
    scale = calibrate(lambda scale: (*own, *of(share / scale)), budget)
    return of(share / max(scale, 1 / _MORE))


def share_of(problem: Problem, share: float | str) -> float:
    """The share of mu^2 for the calibration; "auto" is the smallest that suffices, by the public number of units.

    "auto" is _LITTLE at least, and 0 (no calibration) where more than _MUCH would be needed.

    >>> from dpstudy.privacy.budget import Budget
    >>> [round(share_of(Problem(n, (2,), 2, Budget("1", 1e-5)), "auto"), 3) for n in (50_000, 400)]
    [0.02, 0.078]
    """
    if not isinstance(share, str):
        return share
    if not problem.noised:
        return _LITTLE
    needed = needed_share(problem)
    return 0.0 if needed > _MUCH else max(_LITTLE, needed)


def needed_share(problem: Problem) -> float:
    """The share of mu^2 with which n mu is large enough; noise grows with a person's records, and a record's labels."""
    wide = problem.unit_bound * _bound(problem) / math.sqrt(3)
    mu = mu_of(problem.budget.target, problem.budget.delta)
    return (LEAST * wide / (problem.n * mu)) ** 2 * (1 + 1e-9)


def check_enough(problem: Problem, share: float | str) -> None:
    """Refuse a calibration whose noise would hide the sums that it needs.

    Raises:
        StudyError: with the share, or the number of units, that would do.
    """
    if not problem.noised:
        return
    n, budget, needed = problem.n, problem.budget, needed_share(problem)
    if isinstance(share, str) or share * (1 + 1e-6) >= needed:
        return
    units = math.ceil(n * math.sqrt(needed / share))
    remedy = f"a share of {math.ceil(100 * needed) / 100:g} would do, or" if needed < 0.5 else "it takes"
    raise StudyError(
        f"calibration {share:g}: with {n:,} units at epsilon {budget.epsilon} its noise would hide how often scores "
        f"are right; {remedy} {units:,} units; leave it out, and scores rank without being probabilities"
    )


def releases(problem: Problem, mu: float) -> tuple[Event, ...]:
    """The calibration's events, which compose to Gaussian DP with parameter `mu`."""
    bound = _bound(problem)
    asked = math.sqrt(_QUERIES / (1 - _SCALE_SHARE)) / mu
    return (
        problem.sum_of(1.0).event(SCALE, 1 / (mu * math.sqrt(_SCALE_SHARE))),
        problem.sum_of(bound).event(ASKED, asked, _QUERIES),
    )


def _bound(problem: Problem) -> float:
    """The norm bound of a record's contribution to each sum `calibration`."""
    return math.sqrt(3) if problem.exclusive else math.sqrt(2) * _longest(problem)


def _longest(problem: Problem) -> float:
    """The clipping norm of p - y where records may have several labels."""
    return math.sqrt(min(problem.classes, problem.positives + 1))


def calibrate_scores(
    records: tuple[np.ndarray, ...], problem: Problem, plan: Plan, source: NoiseSource
) -> tuple[float, np.ndarray, np.ndarray, float]:
    """The slope, (m,) offsets, (m,) class shares of the records, and the standard deviation of these shares' noise.

    Args:
        records: (n, m) finite scores, their labels and, where these are not all 1, (n,) weights, which are private.
    """
    scale, asked = (plan.noise.get(name, 0.0) for name in (SCALE, ASKED))
    scores, labels = records[:2]
    weights = records[2] if len(records) > 2 else np.ones(len(labels))
    sizes = released(SCALE, count_sizes(scores, problem.exclusive, weights), scale, source)
    several, m = not problem.exclusive, problem.classes
    total = sum(counted(some, part, problem).sum(0) for some, part in _blocks(labels, weights))
    borne = released(ASKED, total, asked, source, 0)[:m]
    slope, units = size_told(sizes, borne, scale, asked, problem)
    noise, shares = asked / units, borne / units
    prior = shares.mean() if several else 1 / m
    known = np.clip(_told(shares, noise, prior), _LEAST_ODDS / m, 1 - _LEAST_ODDS)
    known = known if several else known / known.sum()
    offsets = np.log(known / (1 - known)) if several else np.zeros(m)  # softmax scores already include the class shares
    log_slope, kept = math.log(slope), []
    for query in range(1, _QUERIES):
        present = math.exp(log_slope)
        total = sum(
            contributions(some, marks, present, offsets, known, problem, part).sum(0)
            for some, marks, part in _blocks(scores, labels, weights)
        )
        answers = released(ASKED, total, asked, source, query) / units
        wrong, bold = _told(answers[:m], noise, 0.0), float(_told(answers[m:], noise, 0.0)[0])
        mean = np.clip(known + wrong, known / 4, 1 - (1 - known) / 4)
        variance = np.maximum(mean * (1 - mean), _LEAST_ODDS)
        offsets = offsets - np.clip(wrong / variance, -_LONGEST_STEP, _LONGEST_STEP)
        slowness = variance.sum() / math.sqrt(m) if several else _SLOWNESS
        log_slope -= min(_LONGEST_STEP, max(-_LONGEST_STEP, bold / slowness))
        kept.append((log_slope, offsets))
    last = kept[-2:]
    slope = math.exp(sum(one for one, _ in last) / len(last))
    return slope, np.mean([one for _, one in last], axis=0), np.clip(shares, _RARE, 1 - _RARE), noise


def counted(labels: np.ndarray, weights: np.ndarray | float, problem: Problem) -> np.ndarray:
    """(n, m + 1) contributions of records to the first sum: their labels, of norm at most sqrt(k), and a zero."""
    y = one_hot(labels, problem.classes, problem.positives).astype(np.float64)
    return truncated(np.reshape(weights, (-1, 1)) * np.column_stack([y, np.zeros(len(y))]), _GRID)


def released(name: str, total: np.ndarray, std: float, source: NoiseSource, step: int = 0) -> np.ndarray:
    """A private sum with noise added; the sum itself where `std` is 0."""
    return source.released(name, total, std, step) if std else total


def count_sizes(scores: np.ndarray, exclusive: bool, weights: np.ndarray | float = 1.0) -> np.ndarray:
    """(2 _EXPONENTS + 1,) histogram of the norms of records' scores; bin edges are powers of two.

    Where classes are exclusive, a record's mean score is subtracted first, since softmax does not depend on it.
    """
    wide = scores.astype(np.float64)
    if exclusive:
        wide = wide - wide.mean(1, keepdims=True)
    norms = (wide * wide).sum(1) ** 0.5
    exponents = np.where(norms > 0, np.frexp(norms)[1], -_EXPONENTS)
    places = np.clip(exponents, -_EXPONENTS, _EXPONENTS) + _EXPONENTS
    counts = np.bincount(places, truncated(np.ones(len(places)) * weights, _GRID), minlength=2 * _EXPONENTS + 1)
    return counts.astype(np.float64)  # without any record, bincount returns integers


def size_told(
    sizes: np.ndarray, borne: np.ndarray, scale: float, asked: float, problem: Problem
) -> tuple[float, float]:
    """The initial slope, and the number of records, both from noisy counts.

    The slope is 1 where with it the largest scores that many records have make neither small nor large logits. The
    number of records may be below, or above, the public number of units.

    Args:
        sizes, borne: how many records have scores of which size, and bear which class.
        scale, asked: standard deviations of their noise.
    """
    seen = np.flatnonzero(sizes > _STANDS_OUT * scale)
    seen = seen if len(seen) else np.array([sizes.argmax()])
    if problem.exclusive:  # each record has exactly one label
        count, noise = float(borne.sum()), asked * math.sqrt(len(borne))
    else:
        count, noise = float(sizes.sum()), scale * math.sqrt(len(sizes))
    far = problem.unit_bound > 1 or abs(count - problem.n) > _FAR_OFF * noise
    largest = 2.0 ** float(seen[-1] - _EXPONENTS)
    units = min(max(count, problem.n / 4), problem.n * problem.unit_bound) if far else problem.n
    return min(_LARGE / largest, max(_SMALL / largest, 1.0)), float(units)


def contributions(
    scores: np.ndarray,
    labels: np.ndarray,
    slope: float,
    offsets: np.ndarray,
    shares: np.ndarray,
    problem: Problem,
    weights: np.ndarray | float = 1.0,
) -> np.ndarray:
    """(n, m + 1) contributions p - y and t, on a grid, within the norms of `releases`, times (n,) weights."""
    several, m = not problem.exclusive, problem.classes
    y = one_hot(labels, m, problem.positives).astype(np.float64)
    logits = slope * scores.astype(np.float64) + offsets
    if several:
        p = sigmoid(np.clip(logits, -_FAR, _FAR))
        wrong, most = p - y, _longest(problem)
        wrong *= np.minimum(1, most / np.maximum((wrong * wrong).sum(1) ** 0.5, most))[:, None]
        further = np.clip(_STEEP * (logits - np.log(shares / (1 - shares))), -1, 1)
        bold = (wrong * further).sum(1) / math.sqrt(m)
    else:
        p = np.ascontiguousarray(softmax(np.ascontiguousarray(logits.T)).T)
        wrong = p - y
        bold = p.max(1) - (p.argmax(1) == labels)
    return truncated(np.column_stack([wrong, bold]) * (BELOW * np.reshape(weights, (-1, 1))), _GRID)


def _blocks(*arrays: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    for start in range(0, max(1, len(arrays[0])), _BLOCK):
        yield tuple(each[start : start + _BLOCK] for each in arrays)


def _told(values: np.ndarray, noise: float, prior: float) -> np.ndarray:
    """Noisy values shrunk towards `prior` by the share of their spread that noise may explain.

    Noise may explain its expected mean square, plus twice the standard deviation of that mean square.
    """
    spread = float(np.mean((values - prior) ** 2))
    explained = noise**2 * (1 + 2 * math.sqrt(2 / len(values)))
    return prior + (values - prior) * (max(0.0, spread - explained) / spread if spread else 0.0)
