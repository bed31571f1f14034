"""Rules for per-record gradients, one for each kind of layer: their norms and their weighted sums.

A rule takes a layer's inputs and the gradients of the summed loss with respect to its outputs, (n copies, ...) both.
Record i's gradient is a sum over its copies and positions of outer products (or, for normalisations, of elementwise
ones). With a single position its norm is a product of two norms. With several the gradients are formed: the shorter way
through Gram matrices over positions loses digits where positions cancel, and a norm that comes out too small would let
a record contribute more than C. Norms and sums are those of record_sums.py, of one and the same numbers.

Broken records (NaN, infinity) get a factor of 0, which does not undo NaN: their rows are zeroed first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn
from torch.nn import functional

from dpstudy.methods.layer_fallback import Recomputed
from dpstudy.methods.record_sums import finite_rows, squared_lengths, weighted_sum
from dpstudy.models.equivariant_conv import EquivariantConv2d
from dpstudy.models.frozen_norm import FrozenBatchNorm2d
from dpstudy.models.standardised_conv import ScaledConv2d, StandardisedConv2d

# A convolution a record is quicker than products of patches where these have many numbers, and many times as many as
# the filters.
_LARGE, _LONG = 50_000, 4


class Rule(Protocol):
    """The interface of a layer's rule for per-record gradients in one pass."""

    def take(self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> Rule:
        """The rule with one pass's tensors: (n copies, ...) inputs, and gradients with respect to the outputs."""

    def held(self, inputs: torch.Tensor, outputs: torch.Tensor) -> int:
        """The number of values held for one record, given the inputs and outputs of all its copies."""

    def squared_norms(self) -> torch.Tensor:
        """(n,) float64 squared norms of per-record gradients over all parameters of the layer.

        They are not below the exact squared norms of the gradients that `sums` adds up.
        """

    def sums(self, factors: torch.Tensor) -> dict[str, torch.Tensor]:
        """Parameter -> float64 sum over records of factor x gradient, for (n,) float64 factors."""


@dataclass(frozen=True)
class OuterProducts:
    """Per-record gradients G_i = sum_p g_ip a_ip^T over positions p, of linear layers and convolutions.

    Attributes:
        layer: nn.Linear or nn.Conv2d.
        a, g: (n, inputs) and (n, outputs) of one pass, where P = 1.
        each: (n, outputs, inputs), the gradients themselves, where P > 1.
        bias: (n, outputs), the gradients of the bias, sum_p g_ip, if the layer has one.
    """

    layer: nn.Linear | nn.Conv2d
    a: torch.Tensor | None = None
    g: torch.Tensor | None = None
    each: torch.Tensor | None = None
    bias: torch.Tensor | None = None

    def take(self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> OuterProducts:
        a, g, each = self._formed(inputs, gradients, copies)
        bias = _summed(self.layer, g)
        if each is None:
            return OuterProducts(self.layer, _single(_taken(a)[:, 0]), _single(g[:, 0]), None, bias)
        return OuterProducts(self.layer, each=each, bias=bias)

    def _formed(
        self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int
    ) -> tuple[torch.Tensor | None, torch.Tensor, torch.Tensor | None]:
        """a (n, P, inputs), g (n, P, outputs), and the gradients (n, outputs, inputs) where they are formed.

        They are formed where P > 1, or where a convolution has several groups or is large; then a is not for use.
        """
        records, layer = len(inputs) // copies, self.layer
        if isinstance(layer, nn.Linear):  # positions, if any, stand between the record and the last axis
            a, g = (x.reshape(records, -1, x.shape[-1]) for x in (inputs, gradients))
            return a, g, products(g, a) if g.shape[1] > 1 else None
        g = gradients.permute(0, 2, 3, 1).reshape(records, -1, gradients.shape[1])
        if _large(layer, gradients, copies):
            return None, g, by_convolution(layer, inputs, gradients, copies)
        a = patches(inputs, layer).reshape(records, g.shape[1], -1)
        if layer.groups > 1:
            return a, g, _grouped(a, g, layer)
        return a, g, products(g, a) if g.shape[1] > 1 else None

    def held(self, inputs: torch.Tensor, outputs: torch.Tensor) -> int:
        layer, copies = self.layer, len(inputs)
        if isinstance(layer, nn.Linear) or _large(layer, outputs, copies):
            return layer.weight.numel() if outputs[0].ndim > 1 else inputs.numel()
        return _patches_held(layer, outputs, copies)

    def squared_norms(self) -> torch.Tensor:
        if self.each is not None:
            squares = squared_lengths(self.each.flatten(1))
        else:
            squares = squared_lengths(_taken(self.a)) * squared_lengths(_taken(self.g))
        return squares if self.bias is None else squares + squared_lengths(self.bias)

    def sums(self, factors: torch.Tensor) -> dict[str, torch.Tensor]:
        if self.each is not None:
            weight = weighted_sum(factors, self.each)
        else:
            a, g = (finite_rows(_taken(x), factors).to(factors.dtype) for x in (self.a, self.g))
            weight = (g * factors[:, None]).T @ a
        if isinstance(self.layer, nn.Conv2d):
            outputs, channels, *kernel = self.layer.weight.shape
            weight = weight.view(outputs, *kernel, channels).permute(0, 3, 1, 2)
        totals = {"weight": weight.reshape(self.layer.weight.shape)}
        return totals if self.bias is None else totals | {"bias": weighted_sum(factors, self.bias)}


def _large(layer: nn.Conv2d, outputs: torch.Tensor, copies: int) -> bool:
    positions = copies * outputs[0, 0].numel() * layer.groups
    enough = positions > _LONG * layer.out_channels and _patches_held(layer, outputs, copies) > _LARGE
    return outputs.device.type == "cpu" and enough


def _patches_held(layer: nn.Conv2d, outputs: torch.Tensor, copies: int) -> int:
    return copies * outputs[0, 0].numel() * layer.weight[0].numel() * layer.groups


def _taken(value: torch.Tensor | None) -> torch.Tensor:
    """The tensor of a pass; None, before there was one, is an error."""
    if value is None:
        raise ValueError("a layer's rule holds nothing of a pass before it takes one")
    return value


@dataclass(frozen=True)
class StandardisedProducts(OuterProducts):
    """Per-record gradients of a convolution's filters and gains, through their weight standardisation.

    `StandardisedConv2d.standardised` says what they are, given the gradients of what acts.

    Attributes:
        each: (n, outputs, inputs), the gradients of w, without the factor gain/length.
        gain: (n, outputs), the gradients of the gains.
        scale: (outputs,), gain/length.
    """

    layer: StandardisedConv2d
    gain: torch.Tensor | None = None
    scale: torch.Tensor | None = None

    def take(self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> StandardisedProducts:
        layer = self.layer
        a, g, each = self._formed(layer.padded(inputs), gradients, copies)
        each = products(g, _taken(a)) if each is None else each
        filters, lengths, bend = layer.standardised()
        u = filters.permute(0, 2, 3, 1).flatten(1)
        basis = torch.stack([torch.full_like(u, u.shape[1] ** -0.5), u], 1)  # (outputs, 2, inputs), orthogonal
        rows = each.transpose(0, 1)
        along = torch.bmm(rows, basis.transpose(1, 2))
        gain = along[:, :, 1].T.clone()
        along[:, :, 1] *= bend.flatten()[:, None]
        rows.baddbmm_(along, basis, alpha=-1)
        return StandardisedProducts(layer, None, None, each, _summed(layer, g), gain, (layer.gain / lengths).flatten())

    def squared_norms(self) -> torch.Tensor:
        rows = squared_lengths(_taken(self.each)) * _taken(self.scale).double().square()
        squares = rows.sum(1) + squared_lengths(_taken(self.gain))
        return squares if self.bias is None else squares + squared_lengths(self.bias)

    def sums(self, factors: torch.Tensor) -> dict[str, torch.Tensor]:
        totals = super().sums(factors)
        totals["weight"] *= _taken(self.scale)[:, None, None, None]
        return totals | {"gain": weighted_sum(factors, _taken(self.gain)).view_as(self.layer.gain)}


@dataclass(frozen=True)
class SharedProducts(OuterProducts):
    """Per-record gradients of an equivariant convolution's filters, each applied in several transformed copies.

    They are sums over these copies, and so are those of the bias.

    Attributes:
        each: (n, fields, inputs).
        bias: (n, fields).
    """

    layer: EquivariantConv2d

    def take(self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> SharedProducts:
        layer = self.layer
        a, g, each = self._formed(inputs, gradients, copies)
        each = products(g, _taken(a)) if each is None else each
        bias = _taken(_summed(layer, g)).unflatten(1, (len(layer.weight), -1)).sum(2)
        return SharedProducts(layer, None, None, layer.shared(each), bias)

    def held(self, inputs: torch.Tensor, outputs: torch.Tensor) -> int:
        return max(super().held(inputs, outputs), self.layer.weight[0].numel() * self.layer.out_channels)


def by_convolution(layer: nn.Conv2d, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> torch.Tensor:
    """(n, outputs, kernel height x kernel width x C) gradients of records, each summed over its copies.

    A call for each record of what autograd calls for a batch: no patches in memory, and as fast as for a batch where a
    record keeps a core busy.
    """
    arguments = (list(layer.stride), list(layer.padding), list(layer.dilation), False, [0, 0], layer.groups)
    weight = layer.filters() if isinstance(layer, EquivariantConv2d) else layer.weight  # only its shape is used
    by_record = [
        torch.ops.aten.convolution_backward(g, x, weight, None, *arguments, [False, True, False])[1]
        for x, g in zip(inputs.split(copies), gradients.split(copies), strict=True)
    ]
    return torch.stack([each.permute(0, 2, 3, 1) for each in by_record]).flatten(2)


def products(g: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """(n, outputs, inputs) sums over positions of products of (n, P, outputs) and (n, P, inputs).

    From bfloat16 they are float32, which holds the products exactly.
    """
    if g.dtype == torch.bfloat16:
        return torch.bmm(g.transpose(1, 2), a, out_dtype=torch.float32)
    return torch.bmm(g.transpose(1, 2), a)


def _single(values: torch.Tensor) -> torch.Tensor:
    """The values in float32, or in their own dtype if that is wider."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _summed(layer: nn.Module, g: torch.Tensor) -> torch.Tensor | None:
    """(n, outputs) per-record gradients of a layer's bias; None if it has none."""
    return None if layer.bias is None else g.sum(1, dtype=torch.promote_types(g.dtype, torch.float32))


def _grouped(a: torch.Tensor, g: torch.Tensor, layer: nn.Conv2d) -> torch.Tensor:
    """(n, outputs, kernel x inputs of a group) gradients, from patches a (n, P, kernel x C) and g (n, P, outputs)."""
    groups, (records, positions, _) = layer.groups, g.shape
    a = a.reshape(records, positions, -1, groups, layer.in_channels // groups).permute(0, 3, 1, 2, 4)
    g = g.reshape(records, positions, groups, -1).permute(0, 2, 3, 1)
    each = products(g.flatten(0, 1).transpose(1, 2), a.flatten(3).flatten(0, 1))
    return each.reshape(records, layer.out_channels, -1)


def patches(inputs: torch.Tensor, layer: nn.Conv2d) -> torch.Tensor:
    """(n, P, kernel height x kernel width x C) input patches of a convolution, one a position, channels innermost.

    Of (n, C, H, W) inputs that lie channels last in memory, whole rows of the kernel are copied at once; torch's unfold
    copies one number after the other.
    """
    if isinstance(layer.padding, str):
        raise ValueError(f"a convolution with padding {layer.padding!r} has no rule: rule_of gives none")
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


@dataclass(frozen=True)
class Elementwise:
    """Per-record gradients of a normalisation's gain and bias.

    The layer is a group normalisation, or a batch normalisation with public statistics. Gradients are sums over
    positions of g x^ and of g.
    """

    layer: nn.GroupNorm | FrozenBatchNorm2d
    gain: torch.Tensor | None = None
    bias: torch.Tensor | None = None

    def take(self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> Elementwise:
        products = (self._standardised(inputs) * gradients, gradients)
        each = (x.flatten(2).sum(2).unflatten(0, (-1, copies)).sum(1) for x in products)
        return Elementwise(self.layer, *each)

    def _standardised(self, inputs: torch.Tensor) -> torch.Tensor:
        if isinstance(self.layer, FrozenBatchNorm2d):
            return self.layer.standardised(inputs)
        return functional.group_norm(inputs, self.layer.num_groups, eps=self.layer.eps)

    def held(self, inputs: torch.Tensor, outputs: torch.Tensor) -> int:
        return inputs.numel()

    def squared_norms(self) -> torch.Tensor:
        return squared_lengths(_taken(self.gain)) + squared_lengths(_taken(self.bias))

    def sums(self, factors: torch.Tensor) -> dict[str, torch.Tensor]:
        each = {"weight": _taken(self.gain), "bias": _taken(self.bias)}
        return {name: weighted_sum(factors, value) for name, value in each.items()}


@dataclass(frozen=True)
class BiasAlone:
    """Per-record gradients of a bias whose layer is otherwise frozen: sums over positions of g.

    Attributes:
        axis: of the outputs, along which the bias lies.
        bias: (n, outputs).
    """

    axis: int
    bias: torch.Tensor | None = None

    def take(self, inputs: torch.Tensor, gradients: torch.Tensor, copies: int) -> BiasAlone:
        g = gradients.movedim(self.axis, -1)
        records = len(inputs) // copies
        g = g.reshape(records, -1, g.shape[-1])
        return BiasAlone(self.axis, g.sum(1, dtype=torch.promote_types(g.dtype, torch.float32)))

    def held(self, inputs: torch.Tensor, outputs: torch.Tensor) -> int:
        return outputs.numel()

    def squared_norms(self) -> torch.Tensor:
        return squared_lengths(_taken(self.bias))

    def sums(self, factors: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"bias": weighted_sum(factors, _taken(self.bias))}


_CHANNELS_FIRST = (nn.Conv2d, StandardisedConv2d, ScaledConv2d, nn.GroupNorm)


def rule_of(layer: nn.Module) -> Rule | None:
    """The rule of a layer with parameters, or None; a subclass has none, since it may compute something else."""
    trained = {name for name, value in layer.named_parameters(recurse=False) if value.requires_grad}
    if isinstance(layer, FrozenBatchNorm2d):
        return Elementwise(layer) if layer.plain and trained == {"weight", "bias"} else Recomputed(layer=layer)
    if trained != {name for name, _ in layer.named_parameters(recurse=False)}:
        return _bias_alone(layer) if trained == {"bias"} else None
    if type(layer) is nn.Linear:
        return OuterProducts(layer)
    if type(layer) is nn.GroupNorm:
        return Elementwise(layer)
    if not isinstance(layer, nn.Conv2d) or layer.padding_mode != "zeros" or isinstance(layer.padding, str):
        return None
    if isinstance(layer, StandardisedConv2d) and type(layer) in (StandardisedConv2d, ScaledConv2d):
        return StandardisedProducts(layer)
    if type(layer) is EquivariantConv2d:
        return SharedProducts(layer)
    return OuterProducts(layer) if type(layer) is nn.Conv2d else None


def _bias_alone(layer: nn.Module) -> Rule | None:
    if type(layer) in _CHANNELS_FIRST:
        return BiasAlone(1)
    last = type(layer) is nn.LayerNorm and len(layer.normalized_shape) == 1
    return BiasAlone(-1) if last or type(layer) is nn.Linear else None
