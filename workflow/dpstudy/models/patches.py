"""A fixed one-layer network whose filters are whitened public image patches (Coates and Ng 2012); it is not trained.

Each patch of an image is brought to mean 0 and, nearly, variance 1, and whitened by what public patches have in common;
its products with whitened public patches of norm 1 are rectified both ways, beyond a threshold, and averaged over the
cells of a grid. Square roots of these are the features: a record's depend on that record alone.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import nn
from torch.nn import functional

from dpstudy.core.errors import StudyError

CONTRAST = 1e-2  # added to the variance of a patch of an image in [0, 1]
_RESPONSES = 2**17  # at once


class Patches(nn.Module):
    """The patch network: images (n, C, H, W) to (n, 2 F g^2 for each size), with F filters and g x g cells.

    Args:
        channels: C of the images.
        sizes: pixels a side of the patches.
        filters: F, of each size.
        grid: g.

    `threshold` (1,) is subtracted before what is left is rectified; responses to public patches have variance 1. Those
    of a size s are `filters_s` (F, C s s), the filters behind the whitening, and `offsets_s` (F,), what they give for
    the mean of the public patches.
    """

    def __init__(self, channels: int, sizes: Sequence[int], filters: int, grid: int):
        super().__init__()
        self.channels, self.sizes, self.grid = channels, tuple(sizes), grid
        self.threshold = nn.Parameter(torch.zeros(1), requires_grad=False)
        for size in self.sizes:
            for name, shape in (("filters", (filters, channels * size**2)), ("offsets", (filters,))):
                self.register_parameter(f"{name}_{size}", nn.Parameter(torch.zeros(shape), requires_grad=False))

    @classmethod
    def of(cls, options: Mapping, channels: int) -> "Patches":
        """The network of a backbone's options."""
        return cls(channels, options["sizes"], options["filters"], options["grid"])

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The features.

        Raises:
            StudyError: the images are smaller than a patch in each cell of the grid.
        """
        least = max(self.sizes) + self.grid - 1
        if min(images.shape[2:]) < least:
            raise StudyError(
                f"patches: images of at least {least} pixels a side, not {'x'.join(map(str, images.shape[2:]))}"
            )
        features = [self._of_size(images, size) for size in self.sizes]
        return torch.cat(features, 1) if len(features) > 1 else features[0]

    def of_size(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The parameters `filters_s` and `offsets_s` of patch size s."""
        return self.get_parameter(f"filters_{size}"), self.get_parameter(f"offsets_{size}")

    def _of_size(self, images: torch.Tensor, size: int) -> torch.Tensor:
        filters, offsets = self.of_size(size)
        height, width = (side - size + 1 for side in images.shape[2:])
        moved = torch.cat([filters, -(offsets + self.threshold)[:, None]], 1)
        pooling = _pooling(height, width, self.grid, images)
        # On a CPU a few images, or a few filters of one, whose responses stay in the cache.
        rows = len(filters) if images.is_cuda else min(len(filters), max(1, _RESPONSES // (height * width)))
        together = len(images) if images.is_cuda else max(1, _RESPONSES // (rows * height * width))
        features = images.new_empty(len(images), 2, len(filters), self.grid**2)
        for start in range(0, len(images), together):
            patches = standardised(functional.unfold(images[start : start + together], size))
            patches = functional.pad(patches, (0, 0, 0, 1), value=1.0)  # times what is subtracted
            for first in range(0, len(filters), rows):
                block, into = slice(first, first + rows), features[start : start + together, :, first : first + rows]
                above = torch.matmul(moved[block], patches)
                below = above.add(2 * self.threshold).clamp_(max=0)
                for half, side in enumerate((above.relu_(), below)):
                    into[:, half] = (pooling @ side.transpose(1, 2)).transpose(1, 2)
        features[:, 1].neg_()
        return features.sqrt_().flatten(1)


def standardised(patches: torch.Tensor) -> torch.Tensor:
    """Patches (..., values, patches), each with mean 0 and nearly variance 1."""
    centred = patches - patches.mean(-2, keepdim=True)
    return centred / (centred.square().mean(-2, keepdim=True) + CONTRAST).sqrt_()


def _pooling(height: int, width: int, grid: int, like: torch.Tensor) -> torch.Tensor:
    """(g g, H W): the mean over each cell, as torch pools adaptively: cells share the middle of an odd side."""
    places = torch.eye(height * width, dtype=like.dtype, device=like.device).view(height * width, 1, height, width)
    return functional.adaptive_avg_pool2d(places, grid).flatten(1).T.contiguous()
