"""Random-patch features: convolutions with random filters, two-sided rectification and pooling (tramer2021, App. A).

After Coates and Ng 2012 and Recht et al. 2018.

The filters are drawn from a seed, not cut from images: nothing here touches other records. Each patch is brought to
mean 0 and variance 1 first, and the responses are averaged over a grid of 2 x 2 cells.
"""

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.features.scaling import check_scaling, scale

PATCH, GRID = 6, 2  # pixels a side of a patch; cells a side of what is pooled
_BIAS = 1.0  # subtracted before rectifying: about a sixth of the responses pass on either side
_CONTRAST = 1e-2  # added to the variance of a patch
_RESPONSES = 2**18  # at once: what stays in a processor's cache is rectified and pooled 3 to 4 times faster


class RandomPatches:
    """Random-patch features, (2 filters, 2, 2) per record."""

    def __init__(self, scaling: str, filters: int, seed: int):
        self.scaling, self.filters, self.seed = scaling, filters, seed

    def shape(self, image_shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """(2 filters, 2, 2) for images (H, W, C)."""
        height, width, channels = image_shape
        check_scaling(self.scaling, channels)
        if min(height, width) < PATCH + GRID - 1:
            least = PATCH + GRID - 1
            raise StudyError(f"random_patches needs images of at least {least} pixels a side, not {height}x{width}")
        return (2 * self.filters, GRID, GRID)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """(n, H, W, C) uint8 to (n, 2 filters, 2, 2) float32."""
        import torch
        from torch.nn import functional

        planes = torch.from_numpy(np.ascontiguousarray(scale(images, self.scaling).transpose(0, 3, 1, 2)))
        filters = torch.from_numpy(self._filters(planes.shape[1]))
        height, width = (side - PATCH + 1 for side in planes.shape[2:])
        places = height * width
        pooling = torch.from_numpy(_pooling(height, width))
        pooled = torch.empty(len(planes), 2, self.filters, GRID**2)
        with torch.inference_mode():
            for start in range(0, len(planes), block := max(1, _RESPONSES // (self.filters * places))):
                patches = functional.unfold(planes[start : start + block], PATCH)  # (n, C 36, places)
                patches = patches - patches.mean(1, keepdim=True)
                patches = patches / (patches.square().mean(1, keepdim=True) + _CONTRAST).sqrt()
                for first in range(0, self.filters, rows := max(1, _RESPONSES // places)):
                    responses = filters[first : first + rows] @ patches
                    into = pooled[start : start + block, :, first : first + rows]
                    into[:, 0] = (responses - _BIAS).relu_() @ pooling
                    into[:, 1] = responses.add_(_BIAS).clamp_(max=0).neg_() @ pooling
        return pooled.view(len(planes), *self.shape(images.shape[1:])).numpy()

    def _filters(self, channels: int) -> np.ndarray:
        """(filters, C 36) float32 with rows of norm 1."""
        drawn = np.random.default_rng(self.seed).standard_normal((self.filters, channels * PATCH**2), dtype=np.float32)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _pooling(height: int, width: int) -> np.ndarray:
    """(H W, GRID^2) float32: the mean over each cell, as torch pools adaptively: cells share an odd middle."""
    weights = np.zeros((height, width, GRID, GRID), np.float32)
    ends = [[(cell * side // GRID, -(-(cell + 1) * side // GRID)) for cell in range(GRID)] for side in (height, width)]
    for row, (top, bottom) in enumerate(ends[0]):
        for column, (left, right) in enumerate(ends[1]):
            share = np.float32(1) / np.float32(bottom - top) / np.float32(right - left)
            weights[top:bottom, left:right, row, column] = share
    return weights.reshape(height * width, GRID**2)


def open(options: dict, *, backbone_folder=None, data_root=None) -> RandomPatches:
    """The random-patch extractor; options `scaling`, `filters` and `seed`."""
    return RandomPatches(options.get("scaling", "unit"), options.get("filters", 256), options.get("seed", 0))
