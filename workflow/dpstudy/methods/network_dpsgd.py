"""DP-SGD for networks: clipped per-record gradients (record_gradients.py), noise once per logical step.

Privacy: as in first_order.py. The gradient of a record is taken over all parameters together and clipped to C, whatever
the size of the micro-batches; independent noise of standard deviation s C is added to every parameter's sum once per
step, an empty batch included; the result is divided by the public q n (tramer2021 section 2; de2022 Eq. 3).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch

from dpstudy.errors import StudyError
from dpstudy.methods import private_normalisation, schedule
from dpstudy.methods.augmentation import Augmentation
from dpstudy.methods.checks import count, finite, one_of
from dpstudy.methods.optimisers import MovingAverage, make_optimiser
from dpstudy.methods.private_normalisation import ChannelSums
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.methods.record_gradients import LOSSES, RecordGradients
from dpstudy.methods.records import Records
from dpstudy.methods.sampling import batches as sampled_batches
from dpstudy.methods.schedule import GRADIENT, Schedule, prepared_by, spent
from dpstudy.models import networks
from dpstudy.models.network import NetworkModel
from dpstudy.privacy.noise import NoiseSource

__all__ = ["Parameters", "fit", "plan", "prepare", "prepared_by", "spent"]


@dataclass(frozen=True)
class Parameters(Schedule):
    """Hyper-parameters of a network's training, beside those of every schedule.

    Attributes:
        network: an architecture of models/networks.py.
        loss: "softmax", or "sigmoid" (mean over classes).
        micro_batch: records whose gradients are held at once, memory and speed only, never the result; "auto": by the
            size of the network's layers.
        moving_average: decay of an exponential average of the weights, which is then the model; 0: none.
        augmentation: how each record's copies are made, or None: the record itself.
    """

    network: str = ""
    loss: str = "softmax"
    micro_batch: int | str = "auto"
    moving_average: float = 0.0
    augmentation: Augmentation | None = None

    METHOD: ClassVar[str] = "network_dpsgd"

    def __post_init__(self):
        if isinstance(self.augmentation, dict):
            object.__setattr__(self, "augmentation", Augmentation(**self.augmentation))
        super().__post_init__()
        networks.check(self.network)
        one_of("network_dpsgd", "loss", self.loss, LOSSES)
        if self.micro_batch != "auto":
            count("network_dpsgd", micro_batch=self.micro_batch)
        if not 0 <= self.moving_average < 1:
            raise StudyError(f"network_dpsgd: moving_average {self.moving_average!r}: must be in [0, 1)")


@dataclass(frozen=True)
class TrainingSet:
    """Private records, and the private sums over them that a normalisation shares between seeds (or None)."""

    records: Records
    sums: ChannelSums | None


def plan(parameters: Parameters, problem: Problem) -> Plan:
    """Steps and noise, as of every schedule.

    Raises:
        StudyError: records that cannot be augmented.
    """
    if parameters.augmentation:
        parameters.augmentation.check(problem.shape)
    return schedule.plan(parameters, problem)


def prepare(batches, parameters: Parameters, problem: Problem) -> TrainingSet:
    """Take (features, labels) batches in; non-finite records take no part."""
    records = Records.read(batches, problem.classes, problem.positives, parameters.hold)
    return TrainingSet(records, private_normalisation.shared_sums(records, parameters.normalisation, problem))


def fit(
    data: TrainingSet,
    parameters: Parameters,
    problem: Problem,
    plan: Plan,
    source: NoiseSource,
    monitor: Callable[[int, NetworkModel], None] | None = None,
) -> Fit:
    """Train one seed. `monitor(step, model)` is called `curve_points` times with released models."""
    records, center, scale = data.records, None, None
    if parameters.normalisation:
        records, center, scale = private_normalisation.normalised(
            records, data.sums, parameters.normalisation, problem, source
        )
    network = _initialised(parameters, problem, source).to(records.device)
    engine = RecordGradients(network)
    weights = dict(network.named_parameters())
    optimisers = {
        name: make_optimiser(
            parameters.optimiser, parameters.step_size(problem), parameters.momentum, value.shape, records.device
        )
        for name, value in weights.items()
    }
    average = MovingAverage(parameters.moving_average, weights) if parameters.moving_average else None

    def model() -> NetworkModel:
        state = {
            name: value.detach().cpu().numpy().copy() for name, value in (average.mean if average else weights).items()
        }
        return NetworkModel(parameters.network, problem.shape, problem.classes, state, center, scale)

    steps, rate, clip = parameters.total_steps(problem), parameters.rate(problem), parameters.clipping_norm
    stops = parameters.stops(steps)
    augmentation = parameters.augmentation
    copies = augmentation.multiplicity if augmentation else 1
    size = parameters.micro_batch
    if size == "auto":
        size = engine.micro_batch(torch.zeros(copies, *problem.shape, device=records.device))
    generator = source.sampling("batches") if rate < 1.0 else None
    sampler = sampled_batches(records.rows, rate, steps, parameters.sampling, generator, slots=problem.n)
    for step, index in enumerate(sampler, start=1):
        gradients = {name: torch.zeros_like(value) for name, value in weights.items()}
        taken = records.rows if index is None else len(index)
        choices = iter(())
        if augmentation:
            choices = iter(augmentation.choose(taken, source.sampling(f"augmentation {step}")).split(size))
        for block in records.blocks(size, index):
            images = block.features.unflatten(1, problem.shape)
            sums = engine.clipped_sum(
                augmentation(images, next(choices)) if augmentation else images,
                block.labels,
                parameters.loss,
                clip if problem.clipped else math.inf,
                copies,
                part=~torch.isnan(block.norms),
            )
            for name, value in sums.items():
                gradients[name] += value
        with torch.no_grad():
            for name, gradient in gradients.items():
                if plan.events:
                    noise = source.gaussian(GRADIENT, tuple(gradient.shape), plan.noise[GRADIENT], step, name)
                    gradient += torch.from_numpy(noise).to(gradient.device)
                optimisers[name].step(weights[name], gradient.div_(rate * problem.n))
            if average:
                average.add(weights)
        if monitor and step in stops:
            monitor(step, model())
    return Fit(finite("network_dpsgd", model()))


def _initialised(parameters: Parameters, problem: Problem, source: NoiseSource) -> torch.nn.Module:
    """The network at a random start, which depends on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(source.sampling("initialisation").integers(1 << 62)))
        return networks.build(parameters.network, problem.shape, problem.classes)
