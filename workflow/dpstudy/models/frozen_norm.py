"""Frozen batch normalisation with public statistics: an affine map of each channel, which mixes no records."""

import torch
from torch import nn


class FrozenBatchNorm2d(nn.Module):
    """x -> weight (x - running_mean) / sqrt(running_var + eps) + bias, channel by channel, then an activation.

    The statistics are of public images, and parameters so that they travel with the weights; they are never trained.

    Args:
        like: the batch normalisation that this stands for, and whose names its parameters have; of timm's kinds the
            activation behind it too.
    """

    def __init__(self, like: nn.modules.batchnorm._BatchNorm):
        super().__init__()
        channels = like.num_features
        self.eps = like.eps
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.running_mean = nn.Parameter(torch.zeros(channels), requires_grad=False)
        self.running_var = nn.Parameter(torch.ones(channels), requires_grad=False)
        self.drop, self.act = getattr(like, "drop", None), getattr(like, "act", None)

    @property
    def plain(self) -> bool:
        """Whether neither dropout nor an activation follows the affine map."""
        return all(one is None or isinstance(one, nn.Identity) for one in (self.drop, self.act))

    def standardised(self, x: torch.Tensor) -> torch.Tensor:
        """The normalised input, before weight and bias."""
        mean, var = self.running_mean[:, None, None], self.running_var.clamp_min(0)[:, None, None]
        return (x - mean) * (var + self.eps).rsqrt()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The normalised input, (n, C, H, W), with its activation."""
        scale = self.weight * (self.running_var.clamp_min(0) + self.eps).rsqrt()
        x = x * scale[:, None, None] + (self.bias - self.running_mean * scale)[:, None, None]
        for layer in (self.drop, self.act):
            x = x if layer is None else layer(x)
        return x
