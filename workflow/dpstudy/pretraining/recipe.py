"""Hyper-parameters of public pre-training, which has no noise and no clipping."""

import math
from dataclasses import dataclass, fields

import torch
from torch import nn


@dataclass(frozen=True)
class Recipe:
    """The hyper-parameters of one pre-training; schemas/config.schema.yaml holds them to what is said here.

    Attributes:
        epochs: passes over the rows.
        batch_size: rows a step, of all processes together.
        learning_rate: at its highest.
        steps: instead of epochs, a number of batches; or None.
        micro_batch: rows of a process at once, where a batch does not fit its memory; None: all.
        objective: "labels", cross-entropy; or "contrast", two pictures of a row shall be alike among those of others
            (SimCLR, Chen et al. 2020); or "scattering", a Wide ResNet tells the scattering coefficients of each picture
            (described.py). The last two read no labels.
        temperature: of "contrast".
        optimiser: "adamw" (its weight decay is multiplied by the learning rate), or "momentum" (0.9).
        weight_decay: of the optimiser.
        schedule: "cosine" or "linear", down to 0; "constant"; or "steps": a tenth after half of the steps, and a
            hundredth after three quarters (de2022 C.3, CIFAR-100).
        warm_up: steps over which the rate rises first.
        augmentation: "warp" (shift, rotate, resize, add noise), "crop" (mirrored crops and flips, de2022 C.2),
            "inception" (a random part of random area, resized, and flipped), "contrast" (SimCLR's), or "none".
        area: the least share of an image's area that "inception" and "contrast" take.
        rand_augment: layers and magnitude of RandAugment beside "inception", or None.
        mixup: alpha of Mixup, 0 for none.
        clip_norm: the norm that a batch's gradient is clipped to, or None.
        moving_average: decay of the average of the iterates, which is then what training gives; or None.
        precision: of the forward and backward pass; weights are float32.
        seed: of start, order and augmentation.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    steps: int | None = None
    micro_batch: int | None = None
    objective: str = "labels"
    temperature: float = 0.5
    optimiser: str = "adamw"
    weight_decay: float = 0.01
    schedule: str = "cosine"
    warm_up: int = 0
    augmentation: str = "warp"
    area: float = 0.05
    rand_augment: dict | None = None
    mixup: float = 0.0
    clip_norm: float | None = None
    moving_average: float | None = None
    precision: str = "float32"
    seed: int = 0

    def rate(self, step: int, steps: int) -> float:
        """The learning rate of step 0, 1, ..., steps - 1."""
        return self.learning_rate * self._risen(step) * self._left(step, steps)

    def _risen(self, step: int) -> float:
        return min(1.0, (step + 1) / self.warm_up) if self.warm_up else 1.0

    def _left(self, step: int, steps: int) -> float:
        if self.schedule == "constant":
            return 1.0
        if self.schedule == "steps":
            return 1.0 if step < steps / 2 else 0.1 if step < 0.75 * steps else 0.01
        if self.schedule == "linear":  # from the end of the warm-up on
            return min(1.0, (steps - step) / max(1, steps - self.warm_up))
        return (1 + math.cos(math.pi * step / steps)) / 2

    def make_optimiser(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """The optimiser; its learning rate is set before each step."""
        if self.optimiser == "adamw":
            return torch.optim.AdamW(parameters, weight_decay=self.weight_decay)
        return torch.optim.SGD(parameters, lr=0.0, momentum=0.9, weight_decay=self.weight_decay)

    @classmethod
    def of(cls, options: dict) -> "Recipe":
        """The recipe in a backbone's options; other options are ignored."""
        names = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in options.items() if key in names})
