"""The scaled pixels as features, channel by channel."""

import numpy as np

from dpstudy.features.deskew import check_grey, deskew
from dpstudy.features.scaling import check_scaling, scale


class Pixels:
    """Features (C, H, W): the scaled image, deskewed first with `deskew`."""

    def __init__(self, scaling: str, deskew: bool = False):
        self.scaling, self.deskew = scaling, deskew

    def shape(self, image_shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """(C, H, W) for images (H, W, C)."""
        check_scaling(self.scaling, image_shape[2])
        if self.deskew:
            check_grey(image_shape[2])
        return (image_shape[2], image_shape[0], image_shape[1])

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """(n, H, W, C) uint8 to (n, C, H, W) float32."""
        if self.deskew:
            images = deskew(images)
        return np.ascontiguousarray(scale(images, self.scaling).transpose(0, 3, 1, 2))


def open(options: dict, *, backbone_folder=None, data_root=None) -> Pixels:
    """The pixel extractor; options `scaling` (unit, symmetric, imagenet, cifar or opponent) and `deskew` (false)."""
    return Pixels(options.get("scaling", "unit"), options.get("deskew", False))
