"""Scattering coefficients of depth 2, the hand-made features of tramer2021 (J = 2, L = 8 angles).

81 channels for each image channel at a quarter of the resolution: (81, 7, 7) for 28x28 grey images and (243, 8, 8) for
32x32 RGB. Private data sets keep their records apart: nothing here is computed across records.
"""

import numpy as np

from dpstudy.errors import StudyError
from dpstudy.features.scaling import check_scaling, scale

SCALES = 2  # J
_CHANNELS = 81  # with L = 8 angles: 1 + 2 * 8 + 8 * 8


class ScatterNet:
    """Features (81 C, H // 4, W // 4); the coefficients of one image channel lie together."""

    def __init__(self, scaling: str):
        self.scaling = scaling
        self._transforms: dict = {}  # (H, W) -> Scattering, whose filters take a moment to build

    def shape(self, image_shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """(81 C, H // 4, W // 4) for images (H, W, C)."""
        height, width, channels = image_shape
        check_scaling(self.scaling, channels)
        if min(height, width) < 2**SCALES:
            raise StudyError(f"scatternet needs images of at least {2**SCALES} pixels a side, not {height}x{width}")
        return (_CHANNELS * channels, height // 2**SCALES, width // 2**SCALES)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """(n, H, W, C) uint8 to (n, 81 C, H // 4, W // 4) float32.

        Raises:
            StudyError: there is no image.
        """
        import torch

        if not len(images):
            raise StudyError("scatternet: an empty batch of images; extract only from shards that have rows")
        planes = np.ascontiguousarray(scale(images, self.scaling).transpose(0, 3, 1, 2))
        size = images.shape[1:3]
        coefficients = self._transform(size)(torch.from_numpy(planes).reshape(-1, *size))
        return coefficients.numpy().reshape(len(images), *self.shape(images.shape[1:]))

    def _transform(self, size: tuple[int, int]):
        if size not in self._transforms:
            from dpstudy.features.scattering import Scattering

            self._transforms[size] = Scattering(*size)
        return self._transforms[size]


def open(options: dict, *, backbone_folder=None, data_root=None) -> ScatterNet:
    """The extractor; option `scaling` (unit or imagenet, unit where absent)."""
    return ScatterNet(options.get("scaling", "unit"))
