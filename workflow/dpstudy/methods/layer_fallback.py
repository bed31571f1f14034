"""Per-record gradients formed in full: for layers without a rule, and for parameters outside of layers."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, field

import torch
from torch import nn

from dpstudy.methods.record_sums import squared_lengths, weighted_sum


@dataclass(frozen=True)
class Formed:
    """Per-record gradients formed in full, by parameter.

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
    """Per-record gradients from running the layer again, on one record each (a vectorised map over records).

    Attributes:
        layer: takes one tensor and gives one, its parameters directly its own.
    """

    layer: nn.Module = field(kw_only=True)

    def take(self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> Recomputed:
        """The rule with one pass's tensors: (n copies, ...) inputs, and gradients with respect to the outputs."""
        values = {name: value.detach() for name, value in self.layer.named_parameters() if value.requires_grad}

        def product(values, x, gradient):
            return (torch.func.functional_call(self.layer, values, (x,)) * gradient).sum()

        with torch.enable_grad():
            each = torch.func.vmap(torch.func.grad(product), in_dims=(None, 0, 0))(
                values, inputs.unflatten(0, (-1, copies)), gradients.unflatten(0, (-1, copies))
            )
        return Recomputed(each, layer=self.layer)

    def held(self, inputs: torch.Tensor, outputs: torch.Tensor) -> int:
        """The number of values held for one record, given the inputs and outputs of all its copies."""
        return sum(value.numel() for value in self.layer.parameters()) + inputs.numel() + outputs.numel()
