"""ScatterNet: scattering coefficients of depth 2, the handcrafted features of tramer2021 (J = 2, L = 8 angles).

81 channels for each image channel at a quarter of the resolution: (81, 7, 7) for 28x28 grey images and (243, 8, 8) for
32x32 RGB. Private data sets keep their records apart: nothing here is computed across records.

With `mirror` the coefficients of an image and of its mirror image are averaged, and the right half of the result, which
repeats the left half with mirrored angles but for a shift of a pixel or so, is left out: half as many numbers to noise,
and a classifier that cannot tell left from right. For pictures whose class does not depend on it. With `root` each
coefficient is then replaced by its square root, with its sign: few large ones no longer decide a record's direction.
With `deskew` the pictures are first set upright (deskew.py).
"""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.features.deskew import check_grey, deskew
from dpstudy.features.scaling import check_scaling, scale
from dpstudy.features.scatter_filters import CHANNELS, FILE, SCALES, Filters
from dpstudy.features.scattering_numpy import NumpyScattering


class ScatterNet:
    """ScatterNet features (81 C, H // 4, W // 4), or with `mirror` (81 C, H // 4, ceil((W // 4) / 2)).

    The coefficients of one image channel are contiguous.
    """

    def __init__(
        self,
        scaling: str,
        mirror: bool = False,
        root: bool = False,
        deskew: bool = False,
        filters: str | os.PathLike | None = None,
        backend: str = "torch",
    ):
        self.scaling, self.mirror, self.root, self.deskew = scaling, mirror, root, deskew
        self._filters, self.backend = filters, backend
        self._transforms: dict = {}  # (H, W) -> Scattering, whose filters take a moment to build

    def shape(self, image_shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """(81 C, H // 4, columns) for images (H, W, C)."""
        height, width, channels = image_shape
        check_scaling(self.scaling, channels)
        if self.deskew:
            check_grey(channels)
        if min(height, width) <= 2**SCALES:  # the borders are continued by as many pixels, mirrored
            raise StudyError(f"scatternet needs images of at least {2**SCALES + 1} pixels a side, not {height}x{width}")
        columns = width // 2**SCALES
        return (CHANNELS * channels, height // 2**SCALES, -(-columns // 2) if self.mirror else columns)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """(n, H, W, C) uint8 to (n, 81 C, H // 4, columns) float32.

        Raises:
            StudyError: there is no image.
        """
        if not len(images):
            raise StudyError("scatternet: an empty batch of images; extract only from shards that have rows")
        if self.deskew:
            images = deskew(images)
        coefficients = self._scatter(images)
        if self.mirror:
            columns = self.shape(images.shape[1:])[2]
            both = coefficients[..., :columns] + self._scatter(images[:, :, ::-1])[..., :columns]
            coefficients = np.ascontiguousarray(both / 2)
        return np.sign(coefficients) * np.sqrt(np.abs(coefficients)) if self.root else coefficients

    def _scatter(self, images: np.ndarray) -> np.ndarray:
        planes = np.ascontiguousarray(scale(images, self.scaling).transpose(0, 3, 1, 2))
        size = images.shape[1:3]
        coefficients = self._transform(size)(planes.reshape(-1, *size))
        return coefficients.reshape(len(images), CHANNELS * images.shape[3], *coefficients.shape[2:])

    def _transform(self, size: tuple[int, int]):
        if size not in self._transforms:
            filters = Filters.of(*size) if self._filters is None else Filters.read(self._filters)
            if filters.size != tuple(size):
                raise StudyError(f"scatternet: filters for maps of {filters.size}, and images are {tuple(size)}")
            self._transforms[size] = _by_torch(filters) if self.backend == "torch" else NumpyScattering(filters)
        return self._transforms[size]


def _by_torch(filters: Filters):
    import torch

    from dpstudy.features.scattering import Scattering

    transform = Scattering(filters)
    return lambda maps: transform(torch.from_numpy(maps)).numpy()


def open(options: dict, *, backbone_folder=None, data_root=None) -> ScatterNet:
    """The ScatterNet extractor.

    Options: `scaling` (unit, symmetric, imagenet, cifar or opponent), `mirror`, `root` and `deskew` (false).

    Where `backbone_folder` has its filters, as that of a bundle, it does without torch where there is none.
    """
    flags = {key: options.get(key, False) for key in ("mirror", "root", "deskew")}
    if backbone_folder is None or not Path(backbone_folder, FILE).is_file():
        return ScatterNet(options.get("scaling", "unit"), **flags)
    backend = "torch" if find_spec("torch") else "numpy"
    return ScatterNet(options.get("scaling", "unit"), **flags, filters=backbone_folder, backend=backend)
