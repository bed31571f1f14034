"""The state of a pre-training: taking steps, and saving to and restoring from checkpoints."""

from collections.abc import Mapping
from typing import cast

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from dpstudy.core.errors import StudyError
from dpstudy.methods.moving_average import MovingAverage
from dpstudy.methods.ranks import Ranks
from dpstudy.models import backbones
from dpstudy.pretraining.described import Described
from dpstudy.pretraining.objectives import Projected, contrast, mixed
from dpstudy.pretraining.recipe import Recipe
from dpstudy.pretraining.rows import draws

_STATE, _AVERAGE, _OPTIMISER = "state.", "average.", "optimiser."


class PretrainingRun:
    """The pre-training of one network.

    Args:
        network: at its random start; trained in place, without its classifier where the objective reads no labels.
        shape: (C, h, w) of the pictures.
        classes: of the labels.
        ranks: the processes that share the training.
        pictures: the first items of the training, which the objective "scattering" looks at.

    Attributes:
        done: steps taken.
    """

    def __init__(
        self, network: nn.Module, shape: tuple[int, int, int], classes: int, recipe: Recipe, ranks: Ranks, pictures=()
    ):
        self._recipe, self._classes, self._ranks, self.done = recipe, classes, ranks, 0
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if recipe.objective == "contrast":
            network = backbones.body(network)
            with torch.inference_mode():
                dim = network.eval()(torch.zeros(1, *shape)).shape[1]
            network = Projected(network, dim)
        elif recipe.objective == "scattering":
            network = Described(cast(nn.Sequential, backbones.body(network)), pictures)
        self._network = network.to(self.device).train()
        self._weights = dict(self._network.named_parameters())
        ranks.same(self._floats())
        self._optimiser = recipe.make_optimiser(list(self._weights.values()))
        self._average = MovingAverage(recipe.moving_average, self._floats()) if recipe.moving_average else None

    def step(self, pictures: torch.Tensor, labels: torch.Tensor, rows: int, steps: int) -> None:
        """Take one step.

        Args:
            pictures, labels: of the rows that this process has of the batch, maybe none.
            rows: of the whole batch.
            steps: of the whole training.
        """
        for group in self._optimiser.param_groups:
            group["lr"] = self._recipe.rate(self.done, steps)
        self._optimiser.zero_grad(set_to_none=False)
        self._add_gradients(pictures, labels, rows)
        gradients = {}
        for name, value in self._weights.items():
            if value.grad is None:
                value.grad = torch.zeros_like(value)
            gradients[name] = value.grad
        self._ranks.totalled(gradients)
        if self._recipe.clip_norm:
            nn.utils.clip_grad_norm_(self._weights.values(), self._recipe.clip_norm)
        self._optimiser.step()
        self.done += 1
        if self._average:
            self._average.add(self._floats())

    def _add_gradients(self, pictures: torch.Tensor, labels: torch.Tensor, rows: int) -> None:
        """Of this process's share of the mean over the batch."""
        recipe, count = self._recipe, len(labels)
        if not count:
            return
        pictures, labels = pictures.to(self.device, non_blocking=True), labels.to(self.device, non_blocking=True)
        if recipe.mixup:
            seeds = draws(recipe.seed, "mixup", self.done, self._ranks.rank)
            pictures, labels = mixed(pictures, labels, self._classes, recipe.mixup, seeds)
        if recipe.objective == "contrast":
            with self._precision():
                projected = self._network(pictures)
            (contrast(projected, recipe.temperature) * (count / rows)).backward()
            return
        block = recipe.micro_batch or count
        for part, targets in zip(pictures.split(block), labels.split(block), strict=True):
            with self._precision():
                scores = self._network(part)
            if isinstance(self._network, Described):
                (self._network.loss(scores, targets) * (len(part) / rows)).backward()
                continue
            (functional.cross_entropy(scores.float(), targets, reduction="sum") / rows).backward()

    def _precision(self):
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self._recipe.precision == "bfloat16")

    def _floats(self) -> dict[str, torch.Tensor]:
        """Parameters, and the statistics of batch normalisation."""
        return {name: value for name, value in self._network.state_dict().items() if value.is_floating_point()}

    def finished(self) -> nn.Module:
        """The trained network in evaluation mode, on the CPU; averaged if the recipe says so, without the head.

        Raises:
            StudyError: training diverged.
        """
        if self._average:
            self._network.load_state_dict(self._average.mean, strict=False)
        network = self._network.settled() if isinstance(self._network, Described) else self._network
        network = network.body if isinstance(network, Projected) else network
        network = network.eval().cpu()
        for value in network.state_dict().values():
            if not bool(torch.isfinite(value).all()):
                raise StudyError(f"training diverged; lower learning_rate ({self._recipe.learning_rate})")
        return network

    def state(self) -> tuple[dict[str, np.ndarray], dict]:
        """The tensors and facts of a checkpoint, for `restore`."""
        tensors = {f"{_STATE}{name}": _array(value) for name, value in self._network.state_dict().items()}
        if self._average:
            tensors |= {f"{_AVERAGE}{name}": _array(value) for name, value in self._average.mean.items()}
        for number, moments in self._optimiser.state_dict()["state"].items():
            tensors |= {
                f"{_OPTIMISER}{number}.{key}": _array(torch.as_tensor(value))
                for key, value in moments.items()
                if value is not None
            }
        return tensors, {"done": self.done, "averaged": self._average.count if self._average else 0}

    def restore(self, tensors: Mapping[str, np.ndarray], facts: Mapping) -> None:
        """Continue from a checkpoint that `state` returned."""
        self.done = facts["done"]
        self._network.load_state_dict(_named(tensors, _STATE))
        if self._average:
            for name, value in _named(tensors, _AVERAGE).items():
                self._average.mean[name].copy_(value)
            self._average.count = facts["averaged"]
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in _named(tensors, _OPTIMISER).items():
            number, _, key = name.partition(".")
            moments.setdefault(int(number), {})[key] = value
        known = self._optimiser.state_dict()
        self._optimiser.load_state_dict({"state": moments, "param_groups": known["param_groups"]})


def _named(tensors: Mapping[str, np.ndarray], prefix: str) -> dict[str, torch.Tensor]:
    return {
        name.removeprefix(prefix): torch.from_numpy(value.copy())
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _array(value: torch.Tensor) -> np.ndarray:
    return value.detach().cpu().numpy().copy()
