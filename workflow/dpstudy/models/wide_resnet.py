"""Wide ResNets as de2022 trains them (appendix C.1 and released code): WRN-D-W of Zagoruyko and Komodakis (2016).

A 3x3 convolution to 16 channels; three groups of (D - 4)/6 blocks with 16 W, 32 W and 64 W channels, the second and
third group halving the resolution; ReLU, group normalisation, mean over positions, classifier. In a block ReLU comes
first, then group normalisation, then the convolution, twice, and once before the 1x1 convolution of a skip that changes
shape. Normalisation stands on the residual branch and in front of the classifier, 16 groups each. Weights start at
Gaussians of variance 1/fan-in, biases at 0.

Named "wrn-16-4"; for the ablation "wrn-16-4-gn" has no weight standardisation, "wrn-16-4-plain" no group normalisation
either. There is no dropout.
"""

import torch
from torch import nn

from dpstudy.core.errors import StudyError
from dpstudy.models.names import wide_resnet
from dpstudy.models.standardised_conv import StandardisedConv2d

_STEM, _GROUPS = 16, 16


class Block(nn.Module):
    """The residual block x + conv(norm(relu(conv(norm(relu(x)))))), with a 1x1 convolution if the shape changes."""

    def __init__(self, channels: int, out: int, stride: int, variant: str | None):
        super().__init__()
        self.residual = nn.Sequential(
            *_before(channels, variant),
            _conv(channels, out, 3, stride, variant),
            *_before(out, variant),
            _conv(out, out, 3, 1, variant),
        )
        self.skip = None
        if stride != 1 or channels != out:
            self.skip = nn.Sequential(*_before(channels, variant), _conv(channels, out, 1, stride, variant))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The output (n, out, H / stride, W / stride) of maps (n, channels, H, W)."""
        return (x if self.skip is None else self.skip(x)) + self.residual(x)


def build(architecture: str, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """The network for records (C, H, W), initialised by torch's global generator.

    Raises:
        StudyError: no such architecture, or records that it cannot take.
    """
    depth, width, variant = wide_resnet(architecture)
    if len(shape) != 3 or min(shape[1:]) < 4:
        raise StudyError(f"network {architecture!r}: needs images (C, H, W) of at least 4x4, not {tuple(shape)}")
    channels = _STEM
    layers: list[nn.Module] = [_conv(shape[0], channels, 3, 1, variant)]
    for group, stride in enumerate((1, 2, 2)):
        out = _STEM * width * 2**group
        for block in range((depth - 4) // 6):
            layers.append(Block(channels, out, stride if block == 0 else 1, variant))
            channels = out
    network = nn.Sequential(
        *layers, *_before(channels, variant), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)
    )
    for layer in network.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.normal_(layer.weight, std=layer.weight[0].numel() ** -0.5)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return network


def _before(channels: int, variant: str | None) -> list[nn.Module]:
    """What stands before a convolution."""
    return [nn.ReLU(), *([] if variant == "plain" else [nn.GroupNorm(_GROUPS, channels)])]


def _conv(channels: int, out: int, kernel: int, stride: int, variant: str | None) -> nn.Conv2d:
    kind = nn.Conv2d if variant else StandardisedConv2d
    return kind(channels, out, kernel, stride, kernel // 2)
