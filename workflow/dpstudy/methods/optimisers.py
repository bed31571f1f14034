"""First-order optimisers on a released (already noisy) gradient: post-processing."""

from collections.abc import Mapping

import torch

OPTIMISERS = ("sgd", "momentum", "adam")


class Momentum:
    """v <- momentum v + g; w <- w - rate v. With momentum 0 plain gradient descent."""

    def __init__(self, rate: float, momentum: float, shape, device):
        self.rate, self.momentum = rate, momentum
        self.velocity = torch.zeros(shape, device=device)

    def step(self, weights: torch.Tensor, gradient: torch.Tensor) -> None:
        """Update `weights` in place."""
        self.velocity.mul_(self.momentum).add_(gradient)
        weights.sub_(self.velocity, alpha=self.rate)

    @property
    def state(self) -> dict[str, torch.Tensor]:
        """What the next steps depend on, to be kept and copied back in place."""
        return {"velocity": self.velocity} if self.momentum else {}


class Adam:
    """Adam with its published constants and bias correction (Kingma and Ba 2015, Algorithm 1)."""

    def __init__(self, rate: float, shape, device, decay1: float = 0.9, decay2: float = 0.999, floor: float = 1e-8):
        self.rate, self.decay1, self.decay2, self.floor = rate, decay1, decay2, floor
        self.first, self.second = torch.zeros(shape, device=device), torch.zeros(shape, device=device)
        self.count = torch.zeros(1, dtype=torch.float64)

    def step(self, weights: torch.Tensor, gradient: torch.Tensor) -> None:
        """Update `weights` in place."""
        self.count += 1
        self.first.mul_(self.decay1).add_(gradient, alpha=1 - self.decay1)
        self.second.mul_(self.decay2).addcmul_(gradient, gradient, value=1 - self.decay2)
        count = int(self.count)
        first = self.first / (1 - self.decay1**count)
        second = self.second / (1 - self.decay2**count)
        weights.sub_(first / (second.sqrt() + self.floor), alpha=self.rate)

    @property
    def state(self) -> dict[str, torch.Tensor]:
        """What the next steps depend on, to be kept and copied back in place."""
        return {"first": self.first, "second": self.second, "count": self.count}


class TailAverage:
    """The mean of the iterates of the last half of training (de2022 section 3.4 averages too): post-processing."""

    def __init__(self, steps: int):
        self.first = steps // 2 + 1
        self.count = 0
        self.mean: torch.Tensor | None = None

    def add(self, weights: torch.Tensor, step: int) -> torch.Tensor:
        """Take the iterate after `step` (from 1) in; the average so far, or the iterate itself before the tail."""
        if step < self.first:
            return weights
        self.count += 1
        self.mean = weights.clone() if self.mean is None else self.mean.lerp_(weights, 1 / self.count)
        return self.mean


class MovingAverage:
    """Exponential averages of tensors, with the warm-up min(decay, (1 + t)/(10 + t)) after t steps (de2022, section
    3.4 and released code): post-processing.

    Attributes:
        mean: name -> average.
        count: steps so far.
    """

    def __init__(self, decay: float, values: Mapping[str, torch.Tensor]):
        self._decay, self.count = decay, 0
        self.mean = {name: value.detach().clone() for name, value in values.items()}

    def add(self, values: Mapping[str, torch.Tensor]) -> None:
        """Take the iterates after one more step in."""
        keep = min(self._decay, (1 + self.count) / (10 + self.count))
        self.count += 1
        for name, value in values.items():
            self.mean[name].lerp_(value.detach(), 1 - keep)


def make_optimiser(name: str, rate: float, momentum: float, shape, device) -> Momentum | Adam:
    """The optimiser called `name`: "sgd", "momentum" or "adam"."""
    if name == "adam":
        return Adam(rate, shape, device)
    return Momentum(rate, momentum if name == "momentum" else 0.0, shape, device)
