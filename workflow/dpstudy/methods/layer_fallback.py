"""Per-record gradients of layers that have no rule of their own: any layer that treats records one by one."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, field

import torch
from torch import nn

from dpstudy.errors import StudyError


@dataclass(frozen=True)
class Formed:
    """Gradients that are held whole, one of each parameter a record.

    Attributes:
        each: parameter -> (n, ...).
    """

    each: dict[str, torch.Tensor] = field(default_factory=dict)

    def squared_norms(self) -> torch.Tensor:
        squares = (value.reshape(len(value), -1).square().sum(1) for value in self.each.values())
        return functools.reduce(operator.add, squares)

    def sums(self, factors: torch.Tensor) -> dict[str, torch.Tensor]:
        found = {}
        for name, value in self.each.items():
            dead = (factors == 0).reshape(-1, *[1] * (value.ndim - 1))
            found[name] = torch.einsum("n,n...->...", factors, torch.where(dead, 0.0, value))  # 0 x NaN is NaN
        return found


@dataclass(frozen=True)
class Recomputed(Formed):
    """The layer is run once more on each record, and its own backward pass taken (a vectorised map over records).

    Attributes:
        layer: takes one tensor and gives one, its parameters directly its own.
    """

    layer: nn.Module = field(kw_only=True)

    def take(self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> Recomputed:
        """The rule with this pass's tensors: inputs and gradients of the outputs, (n copies, ...) both."""
        values = {name: value.detach() for name, value in self.layer.named_parameters()}

        def product(values, x, gradient):
            return (torch.func.functional_call(self.layer, values, (x,)) * gradient).sum()

        with torch.enable_grad():
            each = torch.func.vmap(torch.func.grad(product), in_dims=(None, 0, 0))(
                values, inputs.unflatten(0, (-1, copies)), gradients.unflatten(0, (-1, copies))
            )
        return Recomputed(each, layer=self.layer)

    def held(self, inputs: torch.Tensor, outputs: torch.Tensor) -> int:
        """How many numbers it holds for the one record whose copies went in and came out."""
        return sum(value.numel() for value in self.layer.parameters()) + inputs.numel() + outputs.numel()


@dataclass(frozen=True)
class Expanded(Formed):
    """Parameters that a module with layers of its own uses directly: a gain of a branch, an embedding of positions.

    Each record gets a copy of its own in the forward pass, so that the gradients of the copies are the records'.
    """

    @staticmethod
    def copies_of(name: str, value: torch.Tensor, images: int) -> torch.Tensor:
        """(images, ...), a copy an image: of a number, or of a parameter whose first axis stands for the images.

        Raises:
            StudyError: a parameter of another layout.
        """
        if value.ndim and value.shape[0] != 1:
            raise StudyError(
                f"network parameter {name!r}: no rule for the per-record gradients of a parameter of shape "
                f"{tuple(value.shape)} outside a layer"
            )
        shape = value.shape[1:] if value.ndim else (1, 1, 1)  # numbers scale maps (n, C, H, W)
        return value.detach().expand(images, *shape).clone().requires_grad_()

    @classmethod
    def take(cls, gradients: dict[str, torch.Tensor], copies: int, values: dict[str, torch.Tensor]) -> Expanded:
        """The rule with this pass's gradients of the copies, (n copies, ...)."""
        each = {
            name: gradient.unflatten(0, (-1, copies)).sum(1).reshape(-1, *values[name].shape)
            for name, gradient in gradients.items()
        }
        return cls(each)
