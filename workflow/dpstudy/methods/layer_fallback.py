"""Per-record gradients that are held whole: of layers without a rule of their own, and of parameters outside layers."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, field

import torch
from torch import nn

from dpstudy.methods.record_sums import squared_lengths, weighted_sum


@dataclass(frozen=True)
class Formed:
    """Gradients that are held whole, one of each parameter a record.

    Attributes:
        each: parameter -> (n, ...).
    """

    each: dict[str, torch.Tensor] = field(default_factory=dict)

    def squared_norms(self) -> torch.Tensor:
        squares = (squared_lengths(value.reshape(len(value), -1)) for value in self.each.values())
        return functools.reduce(operator.add, squares)

    def sums(self, factors: torch.Tensor) -> dict[str, torch.Tensor]:
        return {name: weighted_sum(factors, value) for name, value in self.each.items()}


@dataclass(frozen=True)
class Recomputed(Formed):
    """The layer is run once more on each record, and its own backward pass taken (a vectorised map over records).

    Attributes:
        layer: takes one tensor and gives one, its parameters directly its own.
    """

    layer: nn.Module = field(kw_only=True)

    def take(self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> Recomputed:
        """The rule with this pass's tensors: inputs and gradients of the outputs, (n copies, ...) both."""
        values = {name: value.detach() for name, value in self.layer.named_parameters() if value.requires_grad}

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
