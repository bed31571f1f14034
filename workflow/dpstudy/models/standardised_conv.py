"""Convolutions with weight standardisation (Qiao et al. 2019; de2022 section 3.1 and appendix C.1; Brock et al. 2021).

The standardisation takes part in the gradient. It looks at weights alone, never across records.
"""

import math

import torch
from torch import nn
from torch.nn import functional

_FLOOR = 1e-4  # of var * fan_in, as in de2022's released code


class StandardisedConv2d(nn.Conv2d):
    """A weight-standardised convolution: filters w act as (w - mean) gain / sqrt(var fan_in), per output channel.

    Mean and (biased) variance are over the fan-in; var fan_in is at least 1e-4.

    Attributes:
        gain: (out, 1, 1, 1), learned, starts at 1.
    """

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.gain = nn.Parameter(torch.ones(self.out_channels, 1, 1, 1))

    def standardised(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The standardised filters u without gain, their lengths, and the gradient's factor b.

        A gradient G with respect to what acts gives <G, u> for the gain and gain/length (G - mean(G) - b <G, u> u)
        for w. Here b is 1, or 0 where the floor stands for the length. (out, C, H, W) and twice (out, 1, 1, 1).
        """
        centred = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        squares = centred.square().sum((1, 2, 3), keepdim=True)
        lengths = squares.clamp_min(_FLOOR).sqrt()
        return centred / lengths, lengths, (squares >= _FLOOR).to(squares.dtype)

    def padded(self, inputs: torch.Tensor) -> torch.Tensor:
        """The inputs with any padding that `padding` does not provide."""
        return inputs

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The output maps (n, out, H', W') of maps (n, C, H, W)."""
        weight = self.standardised()[0] * self.gain
        x = self.padded(inputs)
        return functional.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class ScaledConv2d(StandardisedConv2d):
    """The normaliser-free networks' convolution: filters act as gamma (w - mean) gain / sqrt((var + eps) fan_in).

    Args:
        gamma: the constant of the nonlinearity that comes before, or 1.
        eps: added to the variance.
        same: pad so that the output has ceil(side / stride) positions, the odd row or column at the end, whatever the
            side; then `padding` must be 0.
    """

    def __init__(self, *args, gamma: float = 1.0, eps: float = 1e-6, same: bool = False, **options):
        super().__init__(*args, **options)
        self.gamma, self.eps, self.same = gamma, eps, same

    def standardised(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        centred = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        variance = centred.square().mean((1, 2, 3), keepdim=True)
        lengths = (variance + self.eps).sqrt() * (self.weight[0].numel() ** 0.5 / self.gamma)
        return centred / lengths, lengths, torch.full_like(lengths, self.gamma**-2)

    def padded(self, inputs: torch.Tensor) -> torch.Tensor:
        if not self.same:
            return inputs
        places = zip(inputs.shape[2:], self.kernel_size, self.stride, self.dilation, strict=True)
        down, across = (
            max((math.ceil(side / stride) - 1) * stride + (kernel - 1) * dilation + 1 - side, 0)
            for side, kernel, stride, dilation in places
        )
        return functional.pad(inputs, (across // 2, across - across // 2, down // 2, down - down // 2))
