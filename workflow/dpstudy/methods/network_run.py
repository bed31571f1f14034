"""The state of a network's training: its noisy steps, and its checkpoint's content."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import torch

from dpstudy.methods import private_normalisation
from dpstudy.methods.banded import BandedReleases
from dpstudy.methods.moving_average import MovingAverage
from dpstudy.methods.network_check import check_network
from dpstudy.methods.network_start import begin, choose_trained
from dpstudy.methods.one_by_one import OneByOne
from dpstudy.methods.optimisers import make_optimiser
from dpstudy.methods.preconditioning import precondition
from dpstudy.methods.problem import Plan, Problem
from dpstudy.methods.ranks import Ranks
from dpstudy.methods.record_gradients import RecordGradients, zeros
from dpstudy.methods.record_sums import clipped_for
from dpstudy.methods.schedule import GRADIENT, gradient_sum
from dpstudy.models import networks, preconditioned
from dpstudy.models.lora import merged
from dpstudy.models.network import NetworkModel
from dpstudy.models.preconditioned import Preconditioned
from dpstudy.privacy.noise import NoiseSource

_INITIAL, _LOW_RANK = "initialisation", "low-rank layers"
_WEIGHT, _AVERAGE, _OPTIMISER = "weight.", "average.", "optimiser."
_PARTS = 8  # of a micro-batch: what is left of a batch is filled up to a multiple


class NetworkRun:
    """The training of one seed.

    Args:
        data: the TrainingSet of network_dpsgd.
        parameters: of network_dpsgd.
        source: decides the random start.
        ranks: the processes that share the training.
        start: as a checkpoint has it: what the random start was drawn with, which another process would draw anew.

    Attributes:
        records: under the normalisation, once there is one.
        done: steps taken.
    """

    def __init__(
        self,
        data,
        parameters,
        problem: Problem,
        source: NoiseSource,
        ranks: Ranks,
        start: Mapping[str, int] | None = None,
    ):
        records = data.records
        self.records, self.done = records, 0
        self._parameters, self._problem = parameters, problem
        self._most = (problem.n + 1) * problem.unit_records  # records, of one unit more than there are too
        shape = parameters.augmentation.window(problem.shape) if parameters.augmentation else problem.shape
        drawn = start or {name: int(source.sampling(name).integers(1 << 62)) for name in (_INITIAL, _LOW_RANK)}
        self._start: Mapping[str, int] = ranks.agreed(drawn)
        self._network = initialised(parameters.network, replace(problem, shape=shape), self._start[_INITIAL])
        if data.start is not None:
            begin(self._network, data.start, parameters.network, shape)
        choose_trained(self._network, parameters.trained, self._start[_LOW_RANK])
        if parameters.preconditioning:
            precondition(self._network, parameters.preconditioning, shape, problem.classes)
        self._network.to(records.place.device)
        self._copies = parameters.augmentation.copies if parameters.augmentation else 1
        self._engine, self._micro_batch = self._made_engine(shape, records.place.device, ranks)
        self._weights = {name: value for name, value in self._network.named_parameters() if value.requires_grad}
        self._whole = self._engine
        if parameters.head_steps:  # a second engine, since engines read at construction which parameters are trained
            self._train(self._head())
            self._first, _ = self._made_engine(shape, records.place.device, ranks)
        self._ranks, self._rows, self._dealt = ranks, data.rows, data.dealt
        ranks.same(self._weights)
        self._optimisers = {
            name: make_optimiser(parameters.optimiser, parameters.step_size(problem), parameters.momentum, value)
            for name, value in self._weights.items()
        }
        self._releases = BandedReleases(parameters.bands, parameters.carried)
        self._step_size, self._steps = parameters.step_size(problem), parameters.total_steps(problem)
        decay = parameters.moving_average
        self._average = MovingAverage(decay, self._weights) if decay else None
        self._center: np.ndarray | None = None
        self._scale: np.ndarray | None = None

    def _made_engine(self, shape: tuple[int, ...], device: str, ranks: Ranks) -> tuple[RecordGradients | OneByOne, int]:
        """The engine that sums clipped gradients, and its micro-batch size, once the network has been checked."""
        parameters, network = self._parameters, self._parameters.network
        options = {"precision": parameters.precision, "name": network}
        laid, alone = networks.is_laid_channels_last(network), bool(parameters.record_by_record)
        engine: RecordGradients | OneByOne = OneByOne(self._network, **options)
        if not alone:
            engine = RecordGradients(self._network, channels_last=laid, **options)
        size = parameters.micro_batch
        if size == "auto":
            # One size for all processes and steps, since rounding depends on it, and free memory changes over time.
            size = ranks.agreed(engine.micro_batch(torch.zeros(self._copies, *shape, device=device)))
        check_network(
            network,
            self._network,
            shape,
            self._problem.classes,
            micro_batch=min(size, self._most),
            copies=self._copies,
            one_by_one=alone,
            channels_last=laid,
            definition=(networks.builder(network), parameters.preconditioning),
        )
        if parameters.compile:  # from here on the network keeps hooks
            engine = RecordGradients(self._network, compile=True, channels_last=laid, **options)
        return engine, size

    def _head(self) -> list[str]:
        """The names of the parameters that are trained in the first `head_steps`."""
        head = networks.classifier(self._network)
        return [name for name in self._weights if name.startswith(f"{head}.")]

    def _train(self, names: Iterable[str]) -> None:
        chosen = set(names)
        for name, value in self._weights.items():
            value.requires_grad_(name in chosen)

    def normalise(self, center: np.ndarray, scale: np.ndarray) -> None:
        """Train on (x - center) * scale, with a released or public center and scale."""
        self._center, self._scale = center, scale
        self.records = private_normalisation.apply(self.records, center, scale)

    def step(self, index: np.ndarray | None, plan: Plan, source: NoiseSource) -> None:
        """Take one noisy step on the records `index` (None: all), which may be empty."""
        self.done += 1
        if self._parameters.head_steps:
            first = self.done <= self._parameters.head_steps
            self._train(self._head() if first else self._weights)
            self._engine = self._first if first else self._whole
        gradients = self._clipped_sums(index, source)
        self._ranks.summed(gradients)
        if source.mode != "secure":
            gradients = {name: gradient.float() for name, gradient in gradients.items()}
        if plan.events and self._ranks.first:
            std = plan.noise[GRADIENT]
            gradients = {
                name: self._releases.released(source, GRADIENT, gradient, std, self.done, name)
                for name, gradient in gradients.items()
            }
        gradients = {name: self._own_step(name, gradient.float()) for name, gradient in gradients.items()}
        self._ranks.same(gradients)
        divisor = self._parameters.gradient_divisor(self._problem)
        rate = self._step_size * self._parameters.rate_at(self.done, self._steps)
        with torch.no_grad():
            for name, gradient in gradients.items():
                weights, optimiser = self._weights[name], self._optimisers[name]
                gradient.div_(divisor)
                if self._parameters.weight_decay:
                    gradient.add_(weights, alpha=self._parameters.weight_decay)
                optimiser.rate = rate
                optimiser.step(weights, gradient)
            if self._average:
                self._average.add(self._weights)

    def _own_step(self, name: str, gradient: torch.Tensor) -> torch.Tensor:
        """The update of the parameter `name` from its released gradient."""
        layer, _, parameter = name.rpartition(".base.")
        module = self._network.get_submodule(layer) if layer else None
        return module.own_step(parameter, gradient) if isinstance(module, Preconditioned) else gradient

    def _clipped_sums(self, index: np.ndarray | None, source: NoiseSource) -> dict[str, torch.Tensor]:
        """The private gradient sum over this process's part of the batch, float64; it is not released without noise.

        Together with the other processes' it moves by at most C where a record is added or taken away (record_sums.py).
        """
        parameters, size = self._parameters, self._micro_batch
        total = zeros(self._network)
        shapes = [value.shape for value in total.values()]
        norm = clipped_for(gradient_sum(parameters, self._problem).clip, self._most, size, shapes, self._ranks.size)
        augmentation, choices = parameters.augmentation, iter(())
        mine = None
        if self._ranks.size > 1:
            index = self._ranks.agreed(np.arange(self._rows) if index is None else index)
            mine = self._ranks.own(index)
        if augmentation:
            taken = self._rows if index is None else len(index)
            chosen = augmentation.choose(taken, self._problem.shape, source.sampling(f"augmentation {self.done}"))
            chosen = self._ranks.agreed(chosen)
            choices = iter((chosen if mine is None else chosen[torch.from_numpy(mine)]).split(size))
        if mine is not None and index is not None:
            index = index[mine] // self._ranks.size if self._dealt else index[mine]
        for block in self.records.blocks(size, index):
            images = block.features.unflatten(1, self._problem.shape)
            images = augmentation(images, next(choices)) if augmentation else images
            part = ~torch.isnan(block.norms)
            part = part if block.weights is None else part * block.weights
            images, labels, part = _filled_up(images, block.labels, part, size)
            sums = self._engine.clipped_sum(
                images,
                labels,
                parameters.loss,
                norm,
                self._copies,
                part,
            )
            for name, value in sums.items():
                total[name] += value
        return total

    def model(self) -> NetworkModel:
        """The model that is released: the moving average of the weights, or the last iterate where none is kept."""
        values = dict(self._network.named_parameters()) | (self._average.mean if self._average else {})
        with torch.no_grad():
            plain = preconditioned.merged(self._network, merged(values))
        state = {name: _array(value) for name, value in plain.items()}
        crop = self._parameters.augmentation and self._parameters.augmentation.crop
        facts = self._problem.shape, self._problem.classes, state, self._center, self._scale
        return NetworkModel(self._parameters.network, *facts, input_size=crop)

    def state(self, source: NoiseSource) -> tuple[dict[str, np.ndarray], dict]:
        """The tensors and facts of a checkpoint, for `restore`."""
        tensors = {f"{_WEIGHT}{name}": _array(value) for name, value in self._weights.items()}
        for name, optimiser in self._optimisers.items():
            tensors |= {f"{_OPTIMISER}{key}.{name}": _array(value) for key, value in optimiser.state.items()}
        if self._average:
            tensors |= {f"{_AVERAGE}{name}": _array(value) for name, value in self._average.mean.items()}
        if self._center is not None and self._scale is not None:
            tensors |= {"center": self._center, "scale": self._scale}
        averaged = self._average.count if self._average else 0
        facts = {"done": self.done, "averaged": averaged, "made": source.made(), "micro_batch": self._micro_batch}
        facts |= {"start": dict(self._start)}
        return tensors, facts

    def restore(self, tensors: Mapping[str, np.ndarray], facts: Mapping, source: NoiseSource) -> None:
        """Continue from the tensors and facts of a checkpoint, as `state` returned them.

        With seeded noise micro-batches keep their size, since sums in other parts round otherwise. With secure noise
        no later step is as it would have been, and each has the rounding bound of the size that it is computed with:
        the smaller of the two sizes is taken, since memory may have been too small for the larger.
        """
        self.done, size = facts["done"], facts["micro_batch"]
        self._micro_batch = min(size, self._micro_batch) if source.mode == "secure" else size
        source.resume(facts["made"])
        if "center" in tensors:
            self.normalise(tensors["center"], tensors["scale"])
        with torch.no_grad():
            for name, value in self._weights.items():
                value.copy_(torch.from_numpy(tensors[f"{_WEIGHT}{name}"]))
                for key, moment in self._optimisers[name].state.items():
                    moment.copy_(torch.from_numpy(tensors[f"{_OPTIMISER}{key}.{name}"]))
                if self._average:
                    self._average.mean[name].copy_(torch.from_numpy(tensors[f"{_AVERAGE}{name}"]))
        if self._average:
            self._average.count = facts["averaged"]


def initialised(network: str, problem: Problem, seed: int) -> torch.nn.Module:
    """The network with random initial weights, which depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return networks.build(network, problem.shape, problem.classes)


def _array(value: torch.Tensor) -> np.ndarray:
    return value.detach().cpu().numpy().copy()


def _filled_up(
    images: torch.Tensor, labels: torch.Tensor, part: torch.Tensor, size: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images, labels and weights, padded with zero records of no weight to a multiple of an eighth of the micro-batch.

    What is left of a batch has another size in each step. Tensors of ever new sizes fit into none of the memory that
    was freed before: a training's memory grew by half in a hundred steps.
    """
    rows = len(labels)
    missing = -rows % max(1, size // _PARTS)
    if not missing:
        return images, labels, part
    copies = len(images) // rows

    def filled(values: torch.Tensor, count: int) -> torch.Tensor:
        return torch.cat([values, values.new_zeros(count, *values.shape[1:])])

    return filled(images, missing * copies), filled(labels, missing), filled(part, missing)
