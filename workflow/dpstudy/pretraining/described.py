"""Pre-training by predicting ScatterNet's coefficients of an image, without labels.

The map before the network's pooling shall tell, place by place, the scattering coefficients of depth 2 there
(tramer2021 section 2). Half whitened, all directions of their space count, strong ones more. It resembles learning the
HOG of masked pictures (Wei et al. 2022, MaskFeat), but nothing is masked.

Such a network's features, means over positions, differ little beside what all pictures have in common, and a clipped
gradient then spends itself on what they share. So its last normalisation is set, from public pictures, to give features
of mean 0 whose squares add up to 1 on average, as large as a random start's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from torch import nn
from torch.nn import functional

from dpstudy.core.errors import StudyError
from dpstudy.features.scattering import Scattering

_PICTURES = 2048  # whose moments scale the coefficients
_SETTLED, _AT_ONCE = 512, 64  # of them, those whose features are measured in the end, and how many at once
_TOLD = 128  # principal components at most
_SMALLEST = 1e-6  # of variances, as a share of the largest


def coefficients(scattering: Scattering, planes: torch.Tensor) -> torch.Tensor:
    """(n, 81 C, H // 4, W // 4): signed square roots of the scattering coefficients of planes (n, C, H, W).

    The planes are in [0, 1].
    """
    scattered = scattering(planes.flatten(0, 1))
    scattered = scattered.reshape(len(planes), -1, *scattered.shape[2:]).clone()  # may be saved for a backward pass
    return scattered.sign() * scattered.abs().sqrt()


class Described(nn.Module):
    """A Wide ResNet without its classifier, and a head that predicts half-whitened coefficients at each position.

    Args:
        body: from pictures (n, C, h, w) to features, with its pooling.
        steps: (pictures, coefficients (n, c, h', w')) of steps of the training; the first few give the moments.

    Attributes:
        body: as given; the layers up to its pooling are trained.
    """

    def __init__(self, body: nn.Sequential, steps: Iterable[tuple[torch.Tensor, torch.Tensor]]):
        super().__init__()
        self.body = body
        pool = next(place for place, layer in enumerate(body) if isinstance(layer, nn.AdaptiveAvgPool2d))
        self._front = [body[:pool]]  # in a list: its parameters are the body's, and counted once
        seen, values, rows = [], [], 0
        for pictures, targets in steps:
            seen.append(pictures)
            values.append(targets.movedim(1, -1).flatten(0, -2))
            rows += len(pictures)
            if rows >= _PICTURES:
                break
        self._some = torch.cat(seen)[:_SETTLED]
        centre, turn = half_whitening(torch.cat(values))
        self.centre, self.turn = nn.Buffer(centre), nn.Buffer(turn)
        channels = self._norm.num_channels
        self.head = nn.Conv2d(channels, turn.shape[1], 1)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """The predicted coefficients (n, k, h', w') of images (n, C, h, w)."""
        return self.head(self._front[0](pictures))

    def loss(self, said: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
        """The mean squared error of predictions `said` (n, k, h', w') relative to the variance of the targets.

        The targets `told` are (n, c, h'', w'') coefficients.
        """
        truth = torch.einsum("nchw,ck->nkhw", told - self.centre[:, None, None], self.turn)
        return functional.mse_loss(said.float(), functional.adaptive_avg_pool2d(truth, (said.shape[2], said.shape[3])))

    @property
    def _norm(self) -> nn.GroupNorm:
        """The layer that the pooling follows."""
        return cast(nn.GroupNorm, self._front[0][-1])

    def settled(self) -> nn.Sequential:
        """The body, on the CPU, its last normalisation changed: features of the first images have mean 0.

        Their variances are equal and add up to 1.
        """
        body, layer = self.body.eval().cpu(), self._norm
        with torch.no_grad():
            features = torch.cat([body(part).double() for part in self._some.split(_AT_ONCE)])
            centre, spread = features.mean(0), features.std(0).clamp(min=_SMALLEST) * features.shape[1] ** 0.5
            layer.bias.copy_((layer.bias - centre) / spread)
            layer.weight.copy_(layer.weight / spread)
        return body


def half_whitening(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The means (c,) and a (c, k) matrix that half-whitens (n, c) values into at most 128 components.

    Each one's variance is in proportion to the root of what it was; on average it is 1.

    Raises:
        StudyError: all values are the same.
    """
    values = values.double()
    centre = values.mean(0)
    variances, directions = torch.linalg.eigh((values - centre).T @ (values - centre) / len(values))
    largest_first = range(len(variances) - 1, -1, -1)[:_TOLD]
    chosen = [place for place in largest_first if variances[place] > _SMALLEST * variances[-1]]
    if not chosen:
        raise StudyError("objective 'scattering': all pictures are the same; name a public set with different ones")
    kept = variances[chosen]
    scale = kept**-0.25 / kept.sqrt().mean().sqrt()
    return centre.float(), (directions[:, chosen] * scale).float()
