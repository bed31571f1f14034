"""DP-SGD, momentum and DP-Adam for a linear head, with closed-form per-example clipping.

The gradient of example i is the outer product of its residual r_i (m values) and (x_i, 1), so its norm is
|r_i| sqrt(1 + |x_i|^2) with a learned bias and |r_i| |x_i| without: a step is two matrix products, and no
per-example gradient is stored (tramer2021 section 2; mehta2023 Algorithm 1).

Privacy: a record that takes part changes the clipped sum by at most C; noise of standard deviation s C is added to
the sum once per step, an empty batch included, and the result is divided by the public q n. mehta2023's Algorithm 1
adds sigma C to a *mean*, which is n times too much; its Eq. 3 (sigma C / n) is what this computes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from dpstudy.errors import StudyError
from dpstudy.methods import private_normalisation
from dpstudy.methods.checks import count, one_of, positive
from dpstudy.methods.clipping import LARGEST_NORM, one_hot
from dpstudy.methods.optimisers import OPTIMISERS, make_optimiser
from dpstudy.methods.private_normalisation import ChannelSums, Normalisation
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.methods.sampling import batches as sampled_batches
from dpstudy.models.linear import LinearModel
from dpstudy.privacy.calibration import calibrate
from dpstudy.privacy.events import Event
from dpstudy.privacy.noise import NoiseSource

GRADIENT = "gradient"
# Feature values of one block of rows. On a CPU 2 MB, so that a row gathered for the first matrix product is still in
# cache for the second; on a GPU enough to keep it busy.
_BLOCK_VALUES = {"cpu": 1 << 19, "cuda": 1 << 26}


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
    curve_points: int = 5

    def __post_init__(self):
        if isinstance(self.normalisation, dict):
            object.__setattr__(self, "normalisation", Normalisation(**self.normalisation))
        if (self.epochs is None) == (self.steps is None):
            raise StudyError("first_order: give either `epochs` or `steps`")
        one_of("first_order", "optimiser", self.optimiser, OPTIMISERS)
        one_of("first_order", "loss", self.loss, ("softmax", "sigmoid"))
        one_of("first_order", "sampling", self.sampling, ("poisson", "shuffle"))
        positive("first_order", learning_rate=self.learning_rate, clipping_norm=self.clipping_norm)
        count("first_order", curve_points=self.curve_points)
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
    """Private records in memory: features (n, d) float32, targets (n, m), and sums for the normalisation."""

    features: np.ndarray
    targets: np.ndarray
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
    """Gather (features, labels) batches in memory; non-finite records become zero and take no part."""
    parts = [(np.asarray(x, np.float32), one_hot(y, problem.classes, problem.positives)) for x, y in batches]
    if not parts:
        raise StudyError("there are no training rows to learn from")
    features = parts[0][0] if len(parts) == 1 else np.concatenate([part[0] for part in parts])
    targets = np.concatenate([part[1] for part in parts])
    sums = None
    if parameters.normalisation:
        sums = private_normalisation.channel_sums(features, parameters.normalisation, problem)
    return TrainingSet(features, targets, sums)


def fit(
    data: TrainingSet,
    parameters: Parameters,
    problem: Problem,
    plan: Plan,
    source: NoiseSource,
    monitor: Callable[[int, LinearModel], None] | None = None,
) -> Fit:
    """Train one seed. `monitor(step, model)` is called `curve_points` times with released models."""
    center = scale = None
    if parameters.normalisation:
        center, scale = private_normalisation.release(data.sums, parameters.normalisation, problem, source)
    head = _Head(data, center, scale, parameters, problem)
    optimiser = make_optimiser(
        parameters.optimiser, parameters.step_size(problem), parameters.momentum, head.parameters.shape, head.device
    )
    steps = parameters.total_steps(problem)
    stops = {round(steps * point / parameters.curve_points) for point in range(1, parameters.curve_points + 1)}
    sampler = sampled_batches(
        len(data.features),
        parameters.rate(problem),
        steps,
        parameters.sampling,
        source.sampling("batches"),
        slots=problem.n,
    )
    expected = parameters.rate(problem) * problem.n
    for step, index in enumerate(sampler, start=1):
        gradient = head.clipped_sum(index)
        if plan.events:
            noise = source.gaussian(GRADIENT, tuple(gradient.shape), plan.noise[GRADIENT], step=step)
            gradient += torch.from_numpy(noise).to(head.device)
        optimiser.step(head.parameters, gradient / expected)
        if monitor and step in stops:
            monitor(step, head.model(center, scale))
    model = head.model(center, scale)
    if not (np.isfinite(model.weights).all() and np.isfinite(model.bias).all()):
        raise StudyError("first_order: training diverged to infinite weights; lower the learning rate")
    return Fit(model)


class _Head:
    """The linear head in training: `parameters` is (m, d + 1), the last column the bias (if learned)."""

    def __init__(self, data: TrainingSet, center, scale, parameters: Parameters, problem: Problem):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        features = torch.from_numpy(data.features).to(self.device)
        if center is not None:
            features = (features - torch.from_numpy(center).to(self.device)).mul_(
                torch.from_numpy(scale).to(self.device)
            )
        length = torch.linalg.vector_norm(features, dim=1)
        alive = length <= LARGEST_NORM  # false for a NaN, too
        if not alive.all():
            features = torch.where(alive[:, None], features, 0.0)
        self.features = features
        self.targets = torch.from_numpy(data.targets).to(self.device)
        self.learned_bias = parameters.bias == "learned"
        self.fixed_bias = 0.0 if self.learned_bias else float(parameters.bias)
        self.loss = parameters.loss
        clip = parameters.clipping_norm if problem.clipped else math.inf
        # A record is clipped where its residual is longer than this; a record that takes no part has 0.
        self.longest = torch.where(alive, clip / torch.sqrt(length**2 + float(self.learned_bias)), 0.0)
        # rows of a block; not fewer than classes, or fetching the weights anew for each block would dominate
        self.block = max(problem.classes, _BLOCK_VALUES[self.device.type] // problem.dim)
        width = problem.dim + int(self.learned_bias)
        self.parameters = torch.zeros(problem.classes, width, device=self.device)

    def clipped_sum(self, index: torch.Tensor | None) -> torch.Tensor:
        """The sum over the chosen rows (None: all) of gradients clipped to norm C, shape of `parameters`."""
        total = torch.zeros_like(self.parameters)
        dim = self.features.shape[1]
        rows = len(self.features) if index is None else len(index)
        index = index if index is None else index.to(self.device)
        for start in range(0, rows, self.block):
            if index is None:
                part = slice(start, start + self.block)
                x = self.features[part]
            else:
                part = index[start : start + self.block]
                x = self.features.index_select(0, part)
            residual = self._residual(x, self.targets[part])
            factor = (self.longest[part] / torch.linalg.vector_norm(residual, dim=0)).clamp_max_(1.0)
            # NaN where weights are so large that a record's scores overflow, or from 0/0: the record contributes zero
            residual.mul_(factor).nan_to_num_(0.0)
            total[:, :dim].addmm_(residual, x)
            if self.learned_bias:
                total[:, dim] += residual.sum(1)
        return total

    def _residual(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """(m, rows): class by class, so that both matrix products read x row by row."""
        dim = x.shape[1]
        bias = self.parameters[:, dim:] if self.learned_bias else self.fixed_bias
        logits = self.parameters[:, :dim] @ x.T + bias
        if self.loss == "softmax":
            return torch.softmax(logits, 0) - y.T
        return (torch.sigmoid(logits) - y.T) / y.shape[1]

    def model(self, center, scale) -> LinearModel:
        """The released model at this step."""
        values = self.parameters.detach().cpu().numpy().copy()
        dim = self.features.shape[1]
        bias = values[:, dim] if self.learned_bias else np.full(len(values), self.fixed_bias, np.float32)
        return LinearModel(values[:, :dim], bias.astype(np.float32), center, scale, {"method": "first_order"})
