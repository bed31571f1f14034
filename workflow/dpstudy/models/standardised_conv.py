"""A convolution with weight standardisation (Qiao et al. 2019; de2022 section 3.1 and appendix C.1)."""

import torch
from torch import nn
from torch.nn import functional

_FLOOR = 1e-4  # of var * fan_in, as in de2022's released code


class StandardisedConv2d(nn.Conv2d):
    """A convolution whose filters w, one row per output channel, act as (w - mean) gain / sqrt(var fan_in).

    Mean and (biased) variance are over the fan-in; var fan_in is at least 1e-4. The standardisation takes part in the
    gradient. It looks at weights alone, never across records.

    Attributes:
        gain: (out, 1, 1, 1), learned, starts at 1.
    """

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.gain = nn.Parameter(torch.ones(self.out_channels, 1, 1, 1))

    def standardised(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The filters without gain, of zero mean and length 1 unless the floor binds; what they were divided by; and
        where the floor did not bind: (out, C, H, W) and twice (out, 1, 1, 1)."""
        centred = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        squares = centred.square().sum((1, 2, 3), keepdim=True)
        lengths = squares.clamp_min(_FLOOR).sqrt()
        return centred / lengths, lengths, squares >= _FLOOR

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """(n, out, H', W') of (n, C, H, W)."""
        weight = self.standardised()[0] * self.gain
        return functional.conv2d(inputs, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
