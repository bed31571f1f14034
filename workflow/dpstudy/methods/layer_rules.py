"""What each kind of layer tells about the gradients of single records.

A rule takes a layer's inputs and the gradients of the summed loss with respect to its outputs, (n copies, ...) both.
Record i's gradient is a sum over its copies and positions of outer products (or, for normalisations, of elementwise
ones). With a single position its norm is a product of two norms. With several the gradients are formed: the shorter way
through Gram matrices over positions loses digits where positions cancel, and a norm that comes out too small would let
a record contribute more than C.

Broken records (NaN, infinity) get a factor of 0, which does not undo NaN: their rows are zeroed first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn
from torch.nn import functional

from dpstudy.errors import StudyError


class Rule(Protocol):
    """One layer in one pass."""

    def take(self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> Rule:
        """The rule with this pass's tensors."""

    def squared_norms(self) -> torch.Tensor:
        """(n,) squared Euclidean norms of the records' gradients with respect to all of the layer's parameters."""

    def sums(self, factors: torch.Tensor) -> dict[str, torch.Tensor]:
        """Parameter -> sum over records of factor x gradient."""


@dataclass(frozen=True)
class OuterProducts:
    """Gradients G_i = sum_p g_ip a_ip^T over positions p, of linear layers and convolutions.

    Attributes:
        layer: nn.Linear or nn.Conv2d. The gradient of its bias, if it has one, is sum_p g_ip.
        a, g: (n, P, inputs) and (n, P, outputs) of one pass.
        each: (n, outputs, inputs), the gradients themselves, where P > 1.
    """

    layer: nn.Module
    a: torch.Tensor | None = None
    g: torch.Tensor | None = None
    each: torch.Tensor | None = None

    def take(self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> OuterProducts:
        a, g = self._positions(inputs, gradients)
        records = len(inputs) // copies
        a, g = (x.reshape(records, -1, x.shape[-1]) for x in (a, g))
        formed = torch.bmm(g.transpose(1, 2), a) if g.shape[1] > 1 else None
        return OuterProducts(self.layer, a, g, formed)

    def _positions(self, inputs: torch.Tensor, gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(n copies, P, inputs) and (n copies, P, outputs)."""
        layer = self.layer
        if isinstance(layer, nn.Linear):
            return inputs, gradients  # positions, if any, stand between the record and the last axis
        return patches(inputs, layer), gradients.permute(0, 2, 3, 1).flatten(1, 2)

    def squared_norms(self) -> torch.Tensor:
        if self.each is not None:
            squares = torch.linalg.vector_norm(self.each, dim=(1, 2)).square()
        else:
            squares = self.a.square().sum((1, 2)) * self.g.square().sum((1, 2))
        return squares if self.layer.bias is None else squares + self.g.sum(1).square().sum(1)

    def sums(self, factors: torch.Tensor) -> dict[str, torch.Tensor]:
        if self.each is not None:
            weight = (factors @ _finite(self.each, factors).flatten(1)).view(self.each.shape[1:])
        else:
            scaled = _finite(self.g, factors) * factors[:, None, None]
            weight = scaled.flatten(0, 1).T @ _finite(self.a, factors).flatten(0, 1)
        if isinstance(self.layer, nn.Conv2d):
            outputs, channels, *kernel = self.layer.weight.shape
            weight = weight.view(outputs, *kernel, channels).permute(0, 3, 1, 2)
        found = {"weight": weight.reshape(self.layer.weight.shape)}
        if self.layer.bias is not None:
            found["bias"] = factors @ _finite(self.g, factors).sum(1)
        return found


def patches(inputs: torch.Tensor, layer: nn.Conv2d) -> torch.Tensor:
    """What a convolution sees at each position: (n, P, kernel height x kernel width x C), channels innermost.

    Of (n, C, H, W) inputs that lie channels last in memory, whole rows of the kernel are copied at once; torch's unfold
    copies one number after the other.
    """
    (down, across), (kernel_height, kernel_width) = layer.padding, layer.kernel_size
    x = functional.pad(inputs.permute(0, 2, 3, 1), (0, 0, across, across, down, down)).contiguous()
    n, height, width, channels = x.shape
    rows, columns = (
        (side - dilation * (kernel - 1) - 1) // stride + 1
        for side, kernel, dilation, stride in zip(
            (height, width), layer.kernel_size, layer.dilation, layer.stride, strict=True
        )
    )
    record, row, column, channel = x.stride()
    view = x.as_strided(
        (n, rows, columns, kernel_height, kernel_width, channels),
        (
            record,
            row * layer.stride[0],
            column * layer.stride[1],
            row * layer.dilation[0],
            column * layer.dilation[1],
            channel,
        ),
    )
    return view.reshape(n, rows * columns, -1)


def _finite(values: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """`values` (n, ...) with zeros in the rows whose factor is 0: 0 x NaN is NaN."""
    dead = factors == 0
    return torch.where(dead.reshape(-1, *[1] * (values.ndim - 1)), 0.0, values) if dead.any() else values


@dataclass(frozen=True)
class Elementwise:
    """Gradients of the gain and bias of a group normalisation: sums over positions of g x^ and of g."""

    layer: nn.GroupNorm
    each: tuple[torch.Tensor, torch.Tensor] | None = None

    def take(self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> Elementwise:
        standardised = functional.group_norm(inputs, self.layer.num_groups, eps=self.layer.eps)
        products = (standardised * gradients, gradients)
        return Elementwise(self.layer, tuple(x.flatten(2).sum(2).unflatten(0, (-1, copies)).sum(1) for x in products))

    def squared_norms(self) -> torch.Tensor:
        return sum(each.square().sum(1) for each in self.each)

    def sums(self, factors: torch.Tensor) -> dict[str, torch.Tensor]:
        return dict(zip(("weight", "bias"), (factors @ _finite(each, factors) for each in self.each), strict=True))


def rule_of(name: str, layer: nn.Module) -> Rule:
    """The rule of a layer with parameters.

    Raises:
        StudyError: there is none.
    """
    if isinstance(layer, nn.Linear):
        return OuterProducts(layer)
    if isinstance(layer, nn.Conv2d) and layer.groups == 1 and layer.padding_mode == "zeros":
        if not isinstance(layer.padding, str):
            return OuterProducts(layer)
    if isinstance(layer, nn.GroupNorm) and layer.affine:
        return Elementwise(layer)
    raise StudyError(f"network layer {name!r}: no rule for the per-record gradients of {type(layer).__name__}")
