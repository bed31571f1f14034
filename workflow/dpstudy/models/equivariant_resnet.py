"""A nine-layer residual network, equivariant under rotations and reflections (Hölzl, Rueckert and Kaissis 2023).

Eight convolutions of 3x3, each followed by Mish, group normalisation without parameters, in groups of whole fields, and
three times by the largest of 2x2 positions. Two pairs of them stand on a residual branch, after which the sum is
normalised again ("scale normalisation"). The first five layers are equivariant under quarter turns and mirror images,
those after them under half turns and mirror images alone. At last the largest of each field, means over the four
quarters of the image, and a classifier.

Fields are 8, 16 and 32, for 64, 128 and 256 maps: 0.23 million parameters for CIFAR-10 (the paper's code takes 6, 13
and 39, so that all groups have as many). Weights start at Gaussians of variance 1/fan-in, biases at 0.
"""

import torch
from torch import nn

from dpstudy.core.errors import StudyError
from dpstudy.models.equivariant_conv import EquivariantConv2d, FieldPool, order

_FIELDS, _GROUPS = (8, 16, 32), 8
_ALL, _HALF = "d4", "d2"


class Residual(nn.Module):
    """A residual block with normalisation: norm(x + f(x))."""

    def __init__(self, *layers: nn.Module, maps: int):
        super().__init__()
        self.residual, self.norm = nn.Sequential(*layers), _norm(maps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The output of the block, with the shape of its input (n, maps, H, W)."""
        return self.norm(x + self.residual(x))


def build(architecture: str, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """The network for records (C, H, W), initialised by torch's global generator.

    Raises:
        StudyError: records that it cannot take.
    """
    if len(shape) != 3 or min(shape[1:]) < 16 or shape[1] != shape[2] or shape[1] % 8:
        raise StudyError(
            f"network {architecture!r}: needs square images (C, H, W) whose side is a multiple of 8 and at least "
            f"16, not {tuple(shape)}"
        )
    first, second, third = _FIELDS
    wide, narrow = second * order(_ALL), third * order(_HALF)
    network = nn.Sequential(
        *_block(shape[0], first, _ALL, None),
        *_block(first * order(_ALL), second, _ALL, _ALL, pooled=True),
        Residual(*_block(wide, second, _ALL, _ALL), *_block(wide, second, _ALL, _ALL), maps=wide),
        *_block(wide, third, _ALL, _ALL, pooled=True),
        *_block(third * order(_ALL), third, _HALF, _ALL, pooled=True),
        Residual(*_block(narrow, third, _HALF, _HALF), *_block(narrow, third, _HALF, _HALF), maps=narrow),
        FieldPool(_HALF),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * third, classes),
    )
    for layer in network.modules():
        if isinstance(layer, (EquivariantConv2d, nn.Linear)):
            nn.init.normal_(layer.weight, std=layer.weight[0].numel() ** -0.5)
            nn.init.zeros_(layer.bias)
    return network


def _block(channels: int, fields: int, group: str, before: str | None, pooled: bool = False) -> list[nn.Module]:
    convolution = EquivariantConv2d(channels, fields, 3, group, before)
    pool = [nn.MaxPool2d(2)] if pooled else []
    return [convolution, nn.Mish(), _norm(fields * order(group)), *pool]


def _norm(maps: int) -> nn.GroupNorm:
    return nn.GroupNorm(_GROUPS, maps, affine=False)
