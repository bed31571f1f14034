"""DP-SGD, momentum and DP-Adam for a linear head, with closed-form per-example clipping (gradients.py).

Privacy: a record that takes part changes the clipped sum by at most C; noise of standard deviation s C is added to
the sum once per step, an empty batch included, and the result is divided by the public q n. mehta2023's Algorithm 1
adds sigma C to a *mean*, which is n times too much; its Eq. 3 (sigma C / n) is what this computes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from dpstudy.errors import StudyError
from dpstudy.methods import private_normalisation
from dpstudy.methods.checks import count, finite, one_of, positive
from dpstudy.methods.gradients import CLIPPINGS, LOSSES, Head, clipped_sum
from dpstudy.methods.optimisers import OPTIMISERS, TailAverage, make_optimiser
from dpstudy.methods.private_normalisation import ChannelSums, Normalisation
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.methods.records import Records, RowMap
from dpstudy.methods.sampling import batches as sampled_batches
from dpstudy.models.linear import LinearModel
from dpstudy.privacy.calibration import calibrate
from dpstudy.privacy.events import Event
from dpstudy.privacy.noise import NoiseSource

GRADIENT = "gradient"


@dataclass(frozen=True)
class Parameters:
    """Hyper-parameters of first-order training.

    Attributes:
        optimiser: "sgd", "momentum" or "adam".
        loss: "softmax", or "sigmoid" (mean over classes).
        learning_rate: of the averaged gradient; multiplied by batch_size/learning_rate_batch where that is given.
        batch_size: expected batch size B (q = B/n), or "full".
        epochs, steps: one of them; steps = round(epochs n / B).
        clipping_norm: C.
        momentum: of "momentum".
        sampling: "poisson"; "shuffle" is a control whose noise is calibrated as if it were Poisson.
        bias: "learned", or a fixed number (mehta2023 uses -10 with the sigmoid loss).
        normalisation: a private normalisation of the features first, or None.
        weight_decay: lambda of an L2 penalty (lambda/2) |w|^2, whose gradient joins the released one.
        clipping: "norm" scales gradients down to C; "automatic" scales each to about C (Bu et al. 2022, AUTO-S).
        average: return the mean of the last half of the iterates instead of the last one: post-processing.
        curve_points: how many times along training the model is evaluated.
    """

    learning_rate: float
    clipping_norm: float
    optimiser: str = "momentum"
    loss: str = "softmax"
    learning_rate_batch: int | None = None
    batch_size: int | str = "full"
    epochs: float | None = None
    steps: int | None = None
    momentum: float = 0.9
    sampling: str = "poisson"
    bias: str | float = "learned"
    normalisation: Normalisation | None = None
    weight_decay: float = 0.0
    clipping: str = "norm"
    average: bool = False
    curve_points: int = 5

    def __post_init__(self):
        if isinstance(self.normalisation, dict):
            object.__setattr__(self, "normalisation", Normalisation(**self.normalisation))
        if (self.epochs is None) == (self.steps is None):
            raise StudyError("first_order: give either `epochs` or `steps`")
        one_of("first_order", "optimiser", self.optimiser, OPTIMISERS)
        one_of("first_order", "loss", self.loss, LOSSES)
        one_of("first_order", "clipping", self.clipping, CLIPPINGS)
        one_of("first_order", "sampling", self.sampling, ("poisson", "shuffle"))
        positive("first_order", learning_rate=self.learning_rate, clipping_norm=self.clipping_norm)
        count("first_order", curve_points=self.curve_points)
        if self.weight_decay < 0:
            raise StudyError(f"first_order: weight_decay {self.weight_decay!r}: must be at least 0")
        if self.epochs is not None:
            positive("first_order", epochs=self.epochs)
        else:
            count("first_order", steps=self.steps)
        if self.batch_size != "full":
            count("first_order", batch_size=self.batch_size)
        if isinstance(self.bias, str):
            one_of("first_order", "bias", self.bias, ("learned",))

    def rate(self, problem: Problem) -> float:
        """The sampling rate q."""
        if self.batch_size == "full":
            return 1.0
        if self.batch_size > problem.n:
            raise StudyError(f"first_order: batch_size {self.batch_size} exceeds the {problem.n} training records")
        return self.batch_size / problem.n

    def total_steps(self, problem: Problem) -> int:
        """T, the number of noisy releases."""
        return self.steps or max(1, round(self.epochs / self.rate(problem)))

    def step_size(self, problem: Problem) -> float:
        """The learning rate as applied."""
        if self.learning_rate_batch is None:
            return self.learning_rate
        return self.learning_rate * self.rate(problem) * problem.n / self.learning_rate_batch


@dataclass(frozen=True)
class TrainingSet:
    """Private records, and their private sums for the normalisation (or None)."""

    records: Records
    sums: ChannelSums | None


def plan(parameters: Parameters, problem: Problem) -> Plan:
    """Calibrate the gradient noise to what the normalisation leaves of the budget."""
    rate, steps = parameters.rate(problem), parameters.total_steps(problem)
    facts = {"steps": steps, "sampling_rate": rate, "learning_rate_applied": parameters.step_size(problem)}
    if not problem.noised:
        return Plan((), {GRADIENT: 0.0}, facts)
    fixed = private_normalisation.events(parameters.normalisation) if parameters.normalisation else ()
    sampling = "none" if rate == 1.0 else "poisson"

    def events_at(scale: float) -> tuple[Event, ...]:
        return (*fixed, Event(GRADIENT, "gaussian", scale, parameters.clipping_norm, steps, sampling, rate))

    scale = calibrate(events_at, problem.budget)
    events = events_at(scale)
    if parameters.sampling == "shuffle" and rate < 1.0:
        passes = math.ceil(steps / (problem.n // parameters.batch_size))
        events = (
            *fixed,
            Event(GRADIENT, "gaussian", scale, parameters.clipping_norm, steps, "shuffle", rate, epochs=passes),
        )
    return Plan(events, {GRADIENT: scale * parameters.clipping_norm}, facts | {"noise_multiplier": scale})


def spent(plan: Plan, step: int) -> tuple[Event, ...]:
    """The events of the first `step` steps: what the curve's epsilon is computed from."""
    from dataclasses import replace

    return tuple(
        replace(
            event,
            count=step,
            epochs=None if event.epochs is None else math.ceil(event.epochs * step / event.count),
        )
        if event.name == GRADIENT
        else event
        for event in plan.events
    )


def prepare(batches, parameters: Parameters, problem: Problem) -> TrainingSet:
    """Take (features, labels) batches in; non-finite records become zero and take no part."""
    records = Records.read(batches, problem.classes, problem.positives)
    sums = None
    if parameters.normalisation:
        blocks = (block.cpu().numpy() for block in records.stored())
        sums = private_normalisation.channel_sums(blocks, parameters.normalisation, problem)
    return TrainingSet(records, sums)


def fit(
    data: TrainingSet,
    parameters: Parameters,
    problem: Problem,
    plan: Plan,
    source: NoiseSource,
    monitor: Callable[[int, LinearModel], None] | None = None,
) -> Fit:
    """Train one seed. `monitor(step, model)` is called `curve_points` times with released models."""
    records, center, scale = data.records, None, None
    if parameters.normalisation:
        center, scale = private_normalisation.release(data.sums, parameters.normalisation, problem, source)
        records = records.mapped(RowMap(center=center, scale=scale))
    clip = parameters.clipping_norm if problem.clipped else math.inf
    head = Head(parameters.loss, parameters.bias, clip, parameters.clipping)
    weights = head.start(records)
    optimiser = make_optimiser(
        parameters.optimiser, parameters.step_size(problem), parameters.momentum, weights.shape, records.device
    )
    steps, rate = parameters.total_steps(problem), parameters.rate(problem)
    stops = {round(steps * point / parameters.curve_points) for point in range(1, parameters.curve_points + 1)}
    average = TailAverage(steps) if parameters.average else None
    generator = source.sampling("batches") if rate < 1.0 else None
    sampler = sampled_batches(records.rows, rate, steps, parameters.sampling, generator, slots=problem.n)
    for step, index in enumerate(sampler, start=1):
        gradient = clipped_sum(records, weights, head, index)
        if plan.events:
            noise = source.gaussian(GRADIENT, tuple(gradient.shape), plan.noise[GRADIENT], step=step)
            gradient += torch.from_numpy(noise).to(records.device)
        gradient /= rate * problem.n
        optimiser.step(weights, gradient.add_(weights, alpha=parameters.weight_decay))
        released = average.add(weights, step) if average else weights
        if monitor and step in stops:
            monitor(step, head.model(released, "first_order", center, scale))
    return Fit(finite("first_order", head.model(released, "first_order", center, scale)))
