"""DP-FC: gradient steps of a linear head, preconditioned by a noisy feature covariance that all of them share.

`published` is mehta2023 Algorithm 4: one noisy Gram of clipped features, T noisy clipped gradients, all with the same
noise multiplier; sigmoid loss, bias fixed at -10, weights from zero. The Gram of a record changes by x x^T, of
Frobenius norm at most C_G^2, each gradient sum by at most C_g.

`improved` spends the budget unequally and leaves nothing to tune:
    1. Records are scaled to unit norm (a per-record rule), and their noisy mean is released (private_mean.py). From
       here on x stands for the unit-norm record minus that mean, scaled to unit norm again: a per-record map by a
       released constant, so |x| <= 1 whatever the mean came out as.
    2. The noisy Gram is released: x x^T has Frobenius norm at most 1.
    3. T times, the noisy sum of softmax gradients clipped to C_g is released.
    Adaptive Gaussian releases compose to mu^2 = 1/s_mean^2 + 1/s_gram^2 + T/s_gradient^2 exactly; the shares of mu^2
    are constants, and everything else is post-processing of what was released.
    Without noise and clip it is the regularised optimum of the same loss (regularised.py).
    Step: W <- W - (reach/T) g (G/2 + lambda I)^-1 for the sum g, with G's negative eigenvalues raised to zero and
    lambda the spectral norm of its noise, sqrt(2d) s_gram (symmetric noise, Wigner's semicircle). G/2 bounds the
    Hessian of the softmax loss (Boehning 1992); gradients clipped well below their usual norm move less than
    unclipped ones would, hence a reach that is larger than Newton's 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from dpstudy.core.arrays import Array
from dpstudy.core.errors import StudyError
from dpstudy.methods import private_mean, regularised
from dpstudy.methods.checks import finite
from dpstudy.methods.clipped_sum import ClippedSum
from dpstudy.methods.gradients import LOSSES, Head, clipped_sum
from dpstudy.methods.grams import gram
from dpstudy.methods.optimisers import TailAverage
from dpstudy.methods.problem import Fit, Plan, Problem, check_softmax
from dpstudy.methods.records import Records
from dpstudy.methods.regularised import curvature
from dpstudy.methods.releases import released_array
from dpstudy.methods.row_map import RowMap
from dpstudy.methods.scaled_plan import scaled_plan
from dpstudy.methods.spectral import Preconditioner
from dpstudy.models.linear import LinearModel
from dpstudy.privacy.events import Event
from dpstudy.privacy.gaussian import mu_of
from dpstudy.privacy.noise import NoiseSource
from dpstudy.schema.hyperparameters import Hyperparameters, setting

GRAM, GRADIENT, TARGETS = "gram", "gradient", "targets"
_STEPS_WITHOUT_NOISE, _RATE_UNCLIPPED = 100, 1.9  # below 2, each step lowers the loss
_SMALLEST_RIDGE = 1e-6  # relative to the mean eigenvalue
# Most labels are 0: from probabilities of 1/2, gradients would mostly say that, and noise would hide the rest.
_SIGMOID_BIAS = -4.0
_METHOD = "feature_covariance"


ENTRIES = {  # properties that the workflow's rules read (docs/add-a-method.md)
    "x-reads": "features",
    # data sets that unpublished defaults were chosen on: their ledgers say so
    "x-chosen-on": ["MNIST", "CIFAR-10", "EMNIST letters", "CIFAR-100"],
    "x-curve": True,
    "x-one-label": {
        "where": [{"loss": "softmax"}, {"variant": "improved", "loss": None}],
        "instead": "set loss: sigmoid",
    },
    "x-averages": True,  # supports `contributions: average`
}


@dataclass(frozen=True)
class Parameters(Hyperparameters):
    """Hyper-parameters of DP-FC."""

    variant: Literal["improved", "published"] = setting("improved")
    steps: int | Literal["auto"] = setting(
        "auto",
        "auto (improved): reach/20, between 20 and 50; 100 where there is no noise; with neither noise nor clip, and "
        "rates, reach and ridge left out, the regularised optimum. 0 leaves the least-squares start as it is.",
        least=0,
    )
    clipping_norm: float = setting(0.2, "Bound on a record's gradient.", above=0)
    gram_clipping_norm: float | None = setting(
        None, "Bound on a record's feature norm in the Gram (published; default clipping_norm).", above=0
    )
    loss: str | None = setting(None, "Default: softmax (improved), sigmoid (published).", choices=LOSSES)
    bias: float | None = setting(
        None,
        "A fixed bias of every class; default 0 (improved, softmax), -4 (improved, sigmoid), -10 (published).",
    )
    learning_rate: float | Literal["auto"] = setting(
        "auto",
        "Factor on the preconditioned step; auto (improved): reach/steps, or 1.9 where nothing is clipped.",
        above=0,
        search={"low": 1e-3, "high": 1000.0},
    )
    ridge: float | Literal["known-noise"] = setting(
        "known-noise",
        "Added to the Gram divided by n; known-noise: the spectral norm of its noise.",
        above=0,
        search={"low": 1e-9, "high": 1e-3},
    )
    mean_share: float = setting(
        0.02, "Share of mu^2 spent on a mean that is subtracted (improved; 0: none).", least=0, below=1
    )
    gram_share: float = setting(0.1, "Share of mu^2 spent on the Gram (improved).", above=0, below=1)
    start_share: float = setting(
        0.0,
        "Share of mu^2 spent on a least-squares start, which reuses the Gram (improved; 0: weights start at zero).",
        least=0,
        below=1,
    )
    reach: float | Literal["auto"] = setting(
        "auto",
        "Sum of all learning rates where learning_rate is auto; auto: a function of n, m, epsilon and delta.",
        above=0,
    )
    average: bool = setting(False, "Return the mean of the last half of the iterates.")
    floor: bool = setting(True, "Raise negative eigenvalues of the noisy Gram to zero.")
    # changes no result, so it is not part of the text that keys the noise of `fit`
    curve_points: int = setting(5, "How often along training the model is scored.", least=1, keyed=False)

    METHOD: ClassVar[str] = _METHOD

    def __post_init__(self):
        super().__post_init__()
        published = self.variant == "published"
        if self.loss is None:
            object.__setattr__(self, "loss", "sigmoid" if published else "softmax")
        if self.bias is None:
            default = _SIGMOID_BIAS if self.loss == "sigmoid" else 0.0
            object.__setattr__(self, "bias", -10.0 if published else default)
        for key in ("steps", "learning_rate"):
            if getattr(self, key) == "auto" and published:
                raise StudyError(f"{_METHOD}: {key}: the published variant needs a number")
        if published and self.start_share:
            raise StudyError(f"{_METHOD}: start_share: the published variant starts at zero weights; leave it out")
        if self.steps == 0 and not self.start_share:
            raise StudyError(f"{_METHOD}: steps 0: must be an integer of at least 1, or have a start_share")
        shares = (self.mean_share, self.gram_share, self.start_share)
        if not sum(shares) < 1 + (self.steps == 0) * 1e-9:
            raise StudyError(f"{_METHOD}: mean_share, gram_share and start_share {shares}: their sum must be below 1")

    @property
    def covariance_norm(self) -> float:
        """C_G, the norm bound of features in the Gram matrix."""
        if self.variant == "improved":
            return 1.0
        return self.gram_clipping_norm or self.clipping_norm

    def total_steps(self, problem: Problem) -> int:
        """T, the number of gradient releases."""
        if self.steps == "auto":
            return min(50, max(20, round(self.total_reach(problem) / 20))) if problem.noised else _STEPS_WITHOUT_NOISE
        return self.steps

    def total_reach(self, problem: Problem) -> float:
        """The sum of the learning rates of all steps."""
        return auto_reach(problem) if self.reach == "auto" else self.reach

    def regularised(self, problem: Problem) -> bool:
        """Whether the head is trained to its regularised optimum: without privacy, and with nothing set by hand."""
        free = not problem.clipped and self.variant == "improved" and not self.average and not self.start_share
        return free and (self.steps, self.learning_rate, self.reach, self.ridge) == ("auto",) * 3 + ("known-noise",)

    def step_size(self, problem: Problem) -> float:
        """eta, the learning rate."""
        if self.regularised(problem):
            return 1.0
        if self.learning_rate != "auto":
            return self.learning_rate
        return self.total_reach(problem) / max(1, self.total_steps(problem)) if problem.clipped else _RATE_UNCLIPPED

    def head(self, problem: Problem) -> Head:
        """The linear head: its loss, bias and clipping norm."""
        if self.loss is None or self.bias is None:
            raise ValueError(f"{_METHOD}: loss and bias follow from the variant, and were taken away since")
        return Head(self.loss, self.bias, self.gradient_sum(problem).clip)

    def gradient_sum(self, problem: Problem) -> ClippedSum:
        """The clipped gradient sum, which is released in each step."""
        return problem.sum_of(self.clipping_norm)

    def gram_rows(self, problem: Problem) -> ClippedSum:
        """The records that the Gram matrix sums, of norm at most 1 where they are not clipped."""
        return problem.sum_of(1.0 if self.variant == "improved" else self.covariance_norm)


def auto_reach(problem: Problem) -> float:
    """The automatic sum of learning rates: 500 (n mu/(800 m))^0.2 (m/10)^0.25, between 200 and 1000.

    n mu/m is the signal of a class sum over its noise if the whole budget went into class sums. The constants were
    chosen on MNIST, CIFAR-10, EMNIST letters and a part of CIFAR-100 (ScatterNet features), and are frozen.
    """
    if not problem.noised:
        return 500.0
    signal = problem.n * mu_of(problem.budget.target, problem.budget.delta) / problem.classes
    return min(1000.0, max(200.0, 500 * (signal / 800) ** 0.2 * (problem.classes / 10) ** 0.25))


@dataclass(frozen=True)
class TrainingSet:
    """Private records, mapped for the Gram or mean and for gradients, and private sums at zero weights.

    The sums are those that every seed and trial shares.
    """

    covariates: Records
    records: Records
    sums: dict = field(default_factory=dict)


def plan(parameters: Parameters, problem: Problem) -> Plan:
    """Calibrate the noise to the budget; see the module's proofs for the sensitivities."""
    if parameters.loss == "softmax":
        check_softmax(_METHOD, problem, "set loss: sigmoid for several")
    facts = {"steps": parameters.total_steps(problem), "learning_rate_applied": parameters.step_size(problem)}
    if not problem.noised:
        return Plan((), dict.fromkeys((GRAM, GRADIENT, TARGETS, private_mean.MEAN), 0.0), facts)
    return scaled_plan(_unit_events(parameters, problem), problem.budget, facts)


def _unit_events(parameters: Parameters, problem: Problem) -> tuple[Event, ...]:
    """The events before calibration: with a noise multiplier of 1 each (published), or a total mu of 1 (improved)."""
    steps, gradients = parameters.total_steps(problem), parameters.gradient_sum(problem)
    rows = parameters.gram_rows(problem)
    gram = rows.products
    if parameters.variant == "published":
        return (
            gram.event(GRAM, 1.0),
            gradients.event(GRADIENT, 1.0, steps),
        )
    shares = {"mean": parameters.mean_share, "gram": parameters.gram_share, "start": parameters.start_share}
    rest = 1 - sum(shares.values())
    if not steps:  # without gradient steps, the rest of the budget goes to the start
        shares["start"] += rest
    events = [private_mean.event(shares["mean"], problem)] if shares["mean"] else []
    events.append(gram.event(GRAM, shares["gram"] ** -0.5))
    if shares["start"]:
        events.append(rows.times(math.sqrt(problem.positives)).event(TARGETS, shares["start"] ** -0.5))
    if steps:
        events.append(gradients.event(GRADIENT, math.sqrt(steps / rest), steps))
    return tuple(events)


def spent(plan: Plan, step: int) -> tuple[Event, ...]:
    """The events of the first `step` steps, for the epsilon of the training curve."""
    return tuple(replace(event, count=step) if event.name == GRADIENT else event for event in plan.events)


def prepare(batches, parameters: Parameters, problem: Problem) -> TrainingSet:
    """Read (features, labels) batches; non-finite records become zero and take no part."""
    records = Records.of(batches, problem)
    if parameters.variant == "improved":
        unit = records.mapped(RowMap(unit=True))
        return TrainingSet(unit, unit)
    return TrainingSet(records.mapped(RowMap(clip=parameters.gram_rows(problem).clip)), records)


def prepared_by(parameters: Parameters) -> tuple[str, float]:
    """The values on which `prepare` depends: settings that share them share the prepared records, and their sums."""
    return parameters.variant, parameters.covariance_norm


def fit(
    data: TrainingSet,
    parameters: Parameters,
    problem: Problem,
    plan: Plan,
    source: NoiseSource,
    monitor: Callable[[int, LinearModel], None] | None = None,
) -> Fit:
    """Train one seed. `monitor(step, model)` is called `curve_points` times with released models."""
    center = None
    if parameters.variant == "improved" and parameters.mean_share:
        center = private_mean.release(data.covariates, problem, plan, source)
        moved = data.records.mapped(RowMap(unit_first=True, center=center, unit=True))
        data = TrainingSet(moved, moved)
    preconditioner = _preconditioner(data, parameters, problem, plan, source)
    head, steps = parameters.head(problem), parameters.total_steps(problem)
    weights = head.start(data.records)
    if parameters.start_share:
        weights = preconditioner(_release_targets(data.records, problem, plan, source))
    stops = {round(steps * point / parameters.curve_points) for point in range(1, parameters.curve_points + 1)}
    average = TailAverage(steps) if parameters.average else None
    released = weights

    def model() -> LinearModel:
        return head.model(released, _METHOD, center, unit=parameters.variant == "improved")

    def seen(step: int, weights: Array) -> None:
        nonlocal released
        released = weights
        if monitor and step in stops:
            monitor(step, model())

    if parameters.regularised(problem):
        regularised.train(data.records, head, preconditioner, steps, seen)
        return Fit(finite(_METHOD, model()))
    for step in range(1, steps + 1):
        gradient = _first_sum(data, weights, head) if step == 1 else clipped_sum(data.records, weights, head)
        if plan.events:
            gradient = released_array(source, GRADIENT, gradient, plan.noise[GRADIENT], step)
        weights = weights - parameters.step_size(problem) * preconditioner(gradient / problem.n)
        seen(step, average.add(weights, step) if average else weights)
    if monitor and not steps:
        monitor(0, model())
    return Fit(finite(_METHOD, model()))


def _preconditioner(
    data: TrainingSet, parameters: Parameters, problem: Problem, plan: Plan, source: NoiseSource
) -> Preconditioner:
    """The preconditioner from the released Gram matrix, divided by n, with its ridge."""
    if GRAM not in data.sums:
        data.sums[GRAM] = gram(data.covariates)
    matrix, std = data.sums[GRAM], plan.noise[GRAM] / problem.n
    if problem.noised:
        matrix = source.released(GRAM, matrix, plan.noise[GRAM], symmetric=True)
    matrix = matrix / problem.n
    if parameters.variant == "improved":
        matrix *= curvature(parameters.head(problem), problem.classes) if parameters.regularised(problem) else 0.5
    smallest = _SMALLEST_RIDGE * max(float(np.trace(matrix)) / len(matrix), 1e-12)
    ridge = math.sqrt(2 * len(matrix)) * std if parameters.ridge == "known-noise" else parameters.ridge
    return Preconditioner(matrix, max(ridge, smallest), parameters.floor)


def _first_sum(data: TrainingSet, weights: Array, head: Head) -> Array:
    """The private gradient sum at the start; at zero weights all seeds and trials with the same map share it."""
    if weights.any():
        return clipped_sum(data.records, weights, head)
    if head not in data.sums:
        data.sums[head] = clipped_sum(data.records, weights, head)
    return data.sums[head] + 0.0  # a copy, which may be changed


def _release_targets(records: Records, problem: Problem, plan: Plan, source: NoiseSource) -> Array:
    """(m, d) noisy class sums divided by n: sensitivity sqrt(k) for k positives; centred over exclusive classes."""
    total = records.place.zeros(records.classes, records.dim, dtype="float64")
    for block in records.blocks():
        targets, features = (
            records.place.array(values, records.dtype) for values in (block.one_hot(records.classes), block.shared())
        )
        total += targets.T @ features
    total = records.place.array(total, records.dtype)
    if problem.noised:
        total = released_array(source, TARGETS, total, plan.noise[TARGETS])
    centre = total.mean(0) if problem.exclusive else 0.0
    return records.place.array((total - centre) / problem.n, "float32")
