"""A layer reparametrised between two fixed linear maps, so that its weight's gradient is preconditioned.

A layer's weight W, as a matrix of outputs by inputs (of a convolution: by all numbers of a patch), stands as
V = L^-1 W R^-1 between the symmetric maps R, of its inputs, and L, of its outputs: L V R = W. A record's gradient of V
is then L g R, where g is its gradient of W, and engines that know a linear layer or a 1x1 convolution have it exactly.
"""

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional


class Preconditioned(nn.Module):
    """The preconditioned layer x -> L (V (R x) + c), equal to the original W x + b with b = L c.

    Args:
        layer: a linear layer, or a convolution of one group that is padded with zeros.
        right: (inputs, inputs) R, of a convolution those of a patch, in the order of its weight.
        left: (outputs, outputs) L.
    """

    right: torch.Tensor
    left: torch.Tensor
    undo_right: torch.Tensor
    undo_left: torch.Tensor

    def __init__(self, layer: nn.Linear | nn.Conv2d, right: torch.Tensor, left: torch.Tensor):
        super().__init__()
        like = layer.weight
        self.register_buffer("right", right.to(like), persistent=False)
        self.register_buffer("left", left.to(like), persistent=False)
        self.register_buffer("undo_right", torch.linalg.inv(right.double()).to(like), persistent=False)
        self.register_buffer("undo_left", torch.linalg.inv(left.double()).to(like), persistent=False)
        self.patch: tuple[int, ...] = tuple(like.shape[1:])
        bias = layer.bias is not None
        self.base: nn.Linear | nn.Conv2d
        if isinstance(layer, nn.Conv2d):
            self._places: dict = {"stride": layer.stride, "padding": layer.padding, "dilation": layer.dilation}
            self.base = nn.Conv2d(len(right), len(left), 1, bias=bias).to(like)
        else:
            self.base = nn.Linear(len(right), len(left), bias=bias).to(like)
        with torch.no_grad():
            self.base.weight.copy_(self.undone(like.flatten(1)).view_as(self.base.weight))
            if layer.bias is not None and self.base.bias is not None:
                self.base.bias.copy_(self.undo_left @ layer.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The outputs (n, ...) of the original layer."""
        if isinstance(self.base, nn.Linear):
            return functional.linear(self.base(functional.linear(x, self.right)), self.left)
        patches = functional.conv2d(x, self.right.view(-1, *self.patch), **self._places)
        return functional.conv2d(self.base(patches), self.left[:, :, None, None])

    def undone(self, weight: torch.Tensor) -> torch.Tensor:
        """(outputs, inputs) the step of V that equals a step `weight` of W."""
        return self.undo_left @ weight @ self.undo_right

    def own_step(self, name: str, gradient: torch.Tensor) -> torch.Tensor:
        """The step of V or c that moves W or b by a preconditioned gradient of the parameter `name`."""
        if name == "bias":
            return self.undo_left.to(gradient) @ gradient
        flat = self.undo_left.to(gradient) @ gradient.flatten(1) @ self.undo_right.to(gradient)
        return flat.view_as(gradient)

    def layer_s(self, values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The original layer's `weight` and `bias`, from V and c."""
        weight = self.left @ values["weight"].flatten(1) @ self.right
        parameters = {"weight": weight.view(weight.shape[0], *self.patch)}
        return parameters | ({"bias": self.left @ values["bias"]} if "bias" in values else {})


def merged(network: nn.Module, values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The parameters of the network without these maps that equals one with them."""
    parameters = dict(values)
    for name, layer in network.named_modules():
        if isinstance(layer, Preconditioned):
            base = {key: parameters.pop(f"{name}.base.{key}") for key, _ in layer.base.named_parameters()}
            parameters |= {f"{name}.{key}": value for key, value in layer.layer_s(base).items()}
    return parameters
