"""First-order optimisers on a released (already noisy) gradient: post-processing."""

from __future__ import annotations

from dpstudy.core.arrays import Array, add_scaled, place_of

OPTIMISERS = ("sgd", "momentum", "adam")


class Momentum:
    """Gradient descent with momentum: v <- momentum v + g; w <- w - rate v; plain where momentum is 0."""

    def __init__(self, rate: float, momentum: float, weights: Array):
        self.rate, self.momentum = rate, momentum
        self.velocity = place_of(weights).zeros(*weights.shape)

    def step(self, weights: Array, gradient: Array) -> None:
        """Update `weights` in place."""
        self.velocity *= self.momentum
        self.velocity += gradient
        add_scaled(weights, self.velocity, -self.rate)

    @property
    def state(self) -> dict[str, Array]:
        """The tensors on which later steps depend, for a checkpoint; they are copied back in place."""
        return {"velocity": self.velocity} if self.momentum else {}


class Adam:
    """Adam with its published constants and bias correction (Kingma and Ba 2015, Algorithm 1)."""

    def __init__(self, rate: float, weights: Array, decay1: float = 0.9, decay2: float = 0.999, floor: float = 1e-8):
        self.rate, self.decay1, self.decay2, self.floor = rate, decay1, decay2, floor
        where, shape = place_of(weights), weights.shape
        self.first, self.second = where.zeros(*shape), where.zeros(*shape)
        self.count = where.xp.zeros(1, dtype=where.xp.float64)  # read in each step: not on a GPU

    def step(self, weights: Array, gradient: Array) -> None:
        """Update `weights` in place."""
        self.count += 1
        self.first *= self.decay1
        add_scaled(self.first, gradient, 1 - self.decay1)
        self.second *= self.decay2
        add_scaled(self.second, gradient * gradient, 1 - self.decay2)
        count = int(self.count[0])
        first = self.first / (1 - self.decay1**count)
        second = self.second / (1 - self.decay2**count)
        add_scaled(weights, first / (second**0.5 + self.floor), -self.rate)

    @property
    def state(self) -> dict[str, Array]:
        """The tensors on which later steps depend, for a checkpoint; they are copied back in place."""
        return {"first": self.first, "second": self.second, "count": self.count}


class TailAverage:
    """The mean of the iterates of the last half of training: post-processing (de2022 averages too: 3.1, C.3)."""

    def __init__(self, steps: int):
        self.first = steps // 2 + 1
        self.count = 0
        self.mean: Array | None = None

    def add(self, weights: Array, step: int) -> Array:
        """Take the iterate after `step` (from 1); returns the average so far, or before the tail the iterate itself."""
        if step < self.first:
            return weights
        self.count += 1
        if self.mean is None:
            self.mean = weights + 0.0  # a copy, since the weights are updated in place
        else:
            add_scaled(self.mean, weights - self.mean, 1 / self.count)
        return self.mean


class ExponentialAverage:
    """The exponential moving average of all iterates, with the warm-up min(decay, (1 + t)/(10 + t)) after t steps.

    Post-processing (de2022, section 3.1 and C.3). For networks it is in moving_average.py.
    """

    def __init__(self, decay: float, weights: Array):
        self._decay = decay
        self.mean: Array = weights + 0.0  # a copy, since the weights are updated in place

    def add(self, weights: Array, step: int) -> Array:
        """Take the iterate after `step` (from 1); returns the average."""
        keep = min(self._decay, step / (9 + step))
        add_scaled(self.mean, weights - self.mean, 1 - keep)
        return self.mean


def make_optimiser(name: str, rate: float, momentum: float, weights: Array) -> Momentum | Adam:
    """The optimiser called `name`, "sgd", "momentum" or "adam", for weights of this shape and on their device."""
    if name == "adam":
        return Adam(rate, weights)
    return Momentum(rate, momentum if name == "momentum" else 0.0, weights)
