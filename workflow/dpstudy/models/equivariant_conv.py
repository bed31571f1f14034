"""Group-equivariant convolutions under rotations and reflections (Cohen and Welling 2016).

A group moves images on their grid: "d4" by quarter turns and mirror images (8 elements), "d2" by half turns and mirror
images (4). Maps come in fields of one map for each element: where the image is moved by h, the map of g becomes that of
h g, moved by h. Each filter acts once for each element, moved by it: a network has fewer parameters for as many maps,
and so less noise (Hölzl, Rueckert and Kaissis 2023).
"""

import functools

import numpy as np
import torch
from torch import nn
from torch.nn import functional

_TURNS = {"d4": (0, 1, 2, 3), "d2": (0, 2)}  # quarter turns of a group's elements, each without and with a mirror image


def order(group: str) -> int:
    """The order of a group, which is the number of maps in a field."""
    return 2 * len(_TURNS[group])


class EquivariantConv2d(nn.Conv2d):
    """A group-equivariant convolution from images, or fields of a group, to fields of the same group or a subgroup.

    The map (field o, element h) is the convolution by filter o moved by h; all maps of a field have one bias.

    Args:
        in_channels: of an image, or maps.
        fields: of the outputs.
        kernel_size: odd; sides are continued by zeros, so that maps keep their size.
        group: of the outputs: "d4" or "d2".
        before: of the maps that go in, which has all of `group`'s elements; None: an image.

    Attributes:
        weight: (fields, in_channels, kernel, kernel).
        bias: (fields,).
        places: (elements, in_channels kernel^2), which number of a filter stands at each place of the moved one.
    """

    bias: nn.Parameter  # there always is one
    places: torch.Tensor

    def __init__(self, in_channels: int, fields: int, kernel_size: int, group: str, before: str | None = None):
        elements = order(group)
        super().__init__(in_channels, fields * elements, kernel_size, padding=kernel_size // 2)
        self.weight, self.bias = nn.Parameter(self.weight[:fields].detach()), nn.Parameter(self.bias[:fields].detach())
        self.register_buffer("places", torch.tensor(_places(in_channels, kernel_size, group, before)), persistent=False)

    def filters(self) -> torch.Tensor:
        """The transformed filters that are convolved, (fields elements, in_channels, kernel, kernel)."""
        return self.weight.flatten(1)[:, self.places].view(self.out_channels, *self.weight.shape[1:])

    def shared(self, each: torch.Tensor) -> torch.Tensor:
        """Gradients with respect to the shared weight, from those with respect to the transformed filters.

        Args:
            each: (n, fields elements, kernel^2 in_channels), channels innermost.

        Returns:
            (n, fields, kernel^2 in_channels).
        """
        moved = each.unflatten(1, (-1, len(self.places)))
        channels, kernel = self.in_channels, self.kernel_size[0]
        origins = _channels_inside(self.places, channels, kernel).argsort(1)  # where each number went
        return functools.reduce(
            torch.add, (part[..., origin] for part, origin in zip(moved.unbind(2), origins, strict=True))
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The output maps (n, fields elements, H, W) of inputs (n, in_channels, H, W)."""
        bias = self.bias.repeat_interleave(len(self.places))
        return functional.conv2d(inputs, self.filters(), bias, padding=self.padding)


class FieldPool(nn.Module):
    """Max pooling over the maps of each field, which makes the output invariant except for its position."""

    def __init__(self, group: str):
        super().__init__()
        self.elements = order(group)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """The pooled maps (n, fields, H, W) of maps (n, fields elements, H, W)."""
        return maps.unflatten(1, (-1, self.elements)).amax(2)


def _places(channels: int, kernel: int, group: str, before: str | None) -> np.ndarray:
    """(elements, channels kernel^2) of EquivariantConv2d."""
    inside = _elements(before) if before else [(0, 0)]
    numbers = np.arange(channels * kernel * kernel).reshape(-1, len(inside), kernel, kernel)
    turned = []
    for turns, mirrored in _elements(group):
        back = ((turns if mirrored else -turns) % 4, mirrored)  # the inverse; a mirror image is its own
        maps = [inside.index(_product(back, element)) for element in inside] if before else [0]
        moved = numbers[:, maps]
        turned.append(np.rot90(moved[..., ::-1] if mirrored else moved, turns, (2, 3)).flatten())
    return np.stack(turned)


def _elements(group: str) -> list[tuple[int, int]]:
    """(quarter turns, mirrored), the mirror image being taken first."""
    return [(turns, mirrored) for mirrored in (0, 1) for turns in _TURNS[group]]


def _product(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """The element that moves by the second, then by the first: a mirror image turns what comes after it around."""
    return (first[0] + (-1) ** first[1] * second[0]) % 4, first[1] ^ second[1]


def _channels_inside(places: torch.Tensor, channels: int, kernel: int) -> torch.Tensor:
    """`places`, where places and numbers are counted with channels innermost."""
    number, position = places // kernel**2, places % kernel**2
    return (position * channels + number).unflatten(1, (channels, -1)).transpose(1, 2).flatten(1)
