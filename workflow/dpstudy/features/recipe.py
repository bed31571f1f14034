"""How a network is trained on public images: without noise or clipping, for none of them is private."""

import math
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from dpstudy.errors import StudyError
from dpstudy.features.scaling import scale
from dpstudy.methods.augmentation import Augmentation
from dpstudy.progress import progress

_WARM_UP_STEPS = 50
_SHIFT, _ROTATION, _ZOOM, _NOISE = 0.12, 0.15, 0.1, 0.12  # half sides, radians, relative size, grey levels of [0, 1]
SCHEDULES = ("cosine", "constant", "steps")
AUGMENTATIONS = ("warp", "crop", "none")


@dataclass(frozen=True)
class Recipe:
    """A training.

    Attributes:
        epochs: passes over the rows.
        steps: instead of epochs, a number of batches; or None.
        batch_size: rows a step.
        optimiser: "adamw", or "momentum" (stochastic gradients with momentum 0.9).
        learning_rate: at its highest.
        weight_decay: of the optimiser.
        schedule: "cosine" after a short warm-up, "constant", or "steps": a tenth after half of the steps, and a
            hundredth after three quarters (de2022 C.3, CIFAR-100).
        augmentation: "warp" (shift, rotate, resize, add noise), "crop" (mirrored crops and flips, de2022 C.2), "none".
        seed: of order and augmentation.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    steps: int | None = None
    optimiser: str = "adamw"
    weight_decay: float = 0.01
    schedule: str = "cosine"
    augmentation: str = "warp"
    seed: int = 0

    def __post_init__(self):
        for key, known in (
            ("optimiser", ("adamw", "momentum")), ("schedule", SCHEDULES), ("augmentation", AUGMENTATIONS),
        ):  # fmt: skip
            if getattr(self, key) not in known:
                raise StudyError(f"backbone: {key} {getattr(self, key)!r} does not exist; there are {', '.join(known)}")

    def total(self, rows: int) -> int:
        """The number of steps on so many rows."""
        return self.steps or self.epochs * math.ceil(rows / self.batch_size)

    def rate(self, step: int, steps: int) -> float:
        """The learning rate of step 0, 1, ..., steps - 1."""
        if self.schedule == "constant":
            return self.learning_rate
        if self.schedule == "steps":
            return self.learning_rate * (1.0 if step < steps / 2 else 0.1 if step < 0.75 * steps else 0.01)
        warm = min(1, (step + 1) / _WARM_UP_STEPS)
        return self.learning_rate * warm * (1 + math.cos(math.pi * step / steps)) / 2

    def make_optimiser(self, network: nn.Module) -> torch.optim.Optimizer:
        """Its optimiser, whose rate is set before each step."""
        if self.optimiser == "adamw":
            return torch.optim.AdamW(network.parameters(), weight_decay=self.weight_decay)
        return torch.optim.SGD(network.parameters(), lr=0.0, momentum=0.9, weight_decay=self.weight_decay)

    def augmented(self, planes: torch.Tensor, random: torch.Generator) -> torch.Tensor:
        """(n, C, H, W), one new picture of each."""
        if self.augmentation == "none":
            return planes
        if self.augmentation == "warp":
            return _warped(planes, random)
        crop = Augmentation(1)
        seed = int(torch.randint(1 << 62, (), generator=random))
        return crop(planes, crop.choose(len(planes), planes.shape[1:], np.random.default_rng(seed)))

    @classmethod
    def of(cls, options: dict) -> "Recipe":
        """From a backbone's options, of which it takes its own."""
        own = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in options.items() if key in own})


def planes_of(images: np.ndarray, scaling: str) -> torch.Tensor:
    """(n, C, H, W) float32 of images (n, H, W, C)."""
    return torch.from_numpy(np.ascontiguousarray(scale(images, scaling).transpose(0, 3, 1, 2)))


def train(network: nn.Module, images: np.ndarray, labels: np.ndarray, recipe: Recipe, scaling: str) -> None:
    """Cross-entropy on augmented images, in place, where the network lies."""
    where = next(network.parameters()).device
    labels = torch.from_numpy(np.asarray(labels)).long()
    random = torch.Generator().manual_seed(recipe.seed)
    optimiser, steps = recipe.make_optimiser(network), recipe.total(len(images))
    batches = math.ceil(len(images) / recipe.batch_size)
    for step in progress(range(steps), "pre-training", total=steps):
        if step % batches == 0:
            order = torch.randperm(len(images), generator=random)
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate(step, steps)
        first = step % batches * recipe.batch_size
        rows = order[first : first + recipe.batch_size]
        pictures = recipe.augmented(planes_of(images[rows.numpy()], scaling), random).to(where)
        loss = functional.cross_entropy(network(pictures), labels[rows].to(where))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def _warped(images: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Shift, rotate and resize each image a little, and add noise; (n, C, H, W) in [0, 1]."""

    def spread(size: float, *shape: int) -> torch.Tensor:
        return size * (2 * torch.rand(len(images), *shape, generator=random) - 1)

    angle, zoom, shift = spread(_ROTATION), 1 + spread(_ZOOM), spread(_SHIFT, 2)
    cos, sin = zoom * torch.cos(angle), torch.sin(angle)
    affine = torch.stack([cos, -sin, shift[:, 0], sin, cos, shift[:, 1]], 1).view(-1, 2, 3)
    grid = functional.affine_grid(affine, list(images.shape), align_corners=False)
    moved = functional.grid_sample(images, grid, align_corners=False)
    return (moved + _NOISE * torch.randn(moved.shape, generator=random)).clamp(0, 1)
