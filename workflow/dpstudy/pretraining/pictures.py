"""The augmented images and targets of each step of a pre-training."""

import contextlib
import math
import random
from collections.abc import Iterator

import numpy as np
import torch
from torch.nn import functional
from torch.utils.data import Dataset

from dpstudy.features.scaling import standardised
from dpstudy.features.scatter_filters import Filters
from dpstudy.features.scattering import Scattering
from dpstudy.methods.augmentation import Augmentation
from dpstudy.pretraining.described import coefficients
from dpstudy.pretraining.recipe import Recipe
from dpstudy.pretraining.rows import Order, PublicRows, draws

_SHIFT, _ROTATION, _ZOOM, _NOISE = 0.12, 0.15, 0.1, 0.12  # half sides, radians, relative size, grey levels of [0, 1]
_BLUR_FROM = 64  # pixels a side: smaller pictures are not blurred (Chen et al. 2020, appendix B.9)


class Pictures(Dataset):
    """A data set whose item `step` is the (images float32, labels) of a process's rows in this step.

    Pictures are (n, C, h, w), scaled; for the objective "contrast" (2 n, C, h, w), the second picture of each row after
    all first ones; for "scattering" their coefficients (n, 81 C, h // 4, w // 4) stand for labels. They depend on seed,
    step and process alone: not on the order in which they are asked for.
    """

    def __init__(
        self, rows: PublicRows, order: Order, recipe: Recipe, scaling: str, size: tuple[int, int], part: tuple[int, int]
    ):
        """
        Args:
            size: (h, w) of the pictures.
            part: which process of how many.
        """
        self._rows, self._order, self._recipe = rows, order, recipe
        self._scaling, self._size, (self._rank, self._ranks) = scaling, size, part
        self._held: tuple = ()
        self._scattering = Scattering(Filters.of(*size)) if recipe.objective == "scattering" else None

    def __getitem__(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        group, index = self._order.at(step)
        if not self._held or self._held[0] != group:
            self._held = ()  # let go of the last shards before others are read
            self._held = (group, self._rows.read(group))
        records = self._held[1]
        index = index[self._rank :: self._ranks]
        seeds = draws(self._recipe.seed, "pictures", step, self._rank)
        planes = self.made_of(records.images[index], seeds)
        if self._scattering:
            return standardised(planes, self._scaling), coefficients(self._scattering, planes)
        labels = records.labels[index] if records.labels.ndim == 1 else np.zeros(len(index), np.int32)
        return standardised(planes, self._scaling), torch.from_numpy(labels).long()

    def made_of(self, images: np.ndarray, seeds: np.random.Generator) -> torch.Tensor:
        """Augmented images in [0, 1] from images (n, H, W, C) uint8."""
        kind = self._recipe.augmentation
        if kind in ("inception", "contrast"):
            change = self._inception() if kind == "inception" else _contrast(self._size, self._recipe.area)
            with _seeded(seeds):
                views = [one_by_one(images, change) for _ in range(2 if kind == "contrast" else 1)]
            return torch.cat(views)
        planes = resized(planes_of(images), self._size)
        if kind == "warp":
            return _warped(planes, torch.Generator().manual_seed(int(seeds.integers(1 << 62))))
        if kind == "crop":
            crop = Augmentation(1)
            return crop(planes, crop.choose(len(planes), tuple(planes.shape[1:]), seeds))
        return planes

    def _inception(self):
        from timm.data import create_transform

        rand = self._recipe.rand_augment
        return create_transform(
            self._size, is_training=True, scale=(self._recipe.area, 1.0), color_jitter=None, interpolation="bicubic",
            auto_augment=rand and f"rand-m{rand['magnitude']}-n{rand['layers']}", mean=(0.0,) * 3, std=(1.0,) * 3,
        )  # fmt: skip


def planes_of(images: np.ndarray) -> torch.Tensor:
    """Planes (n, C, H, W) float32 in [0, 1] of images (n, H, W, C) uint8."""
    return torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2))).float() / 255


def resized(planes: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """The planes resized to `size`, clipped to [0, 1]."""
    if tuple(planes.shape[2:]) == tuple(size):
        return planes
    return functional.interpolate(planes, size, mode="bicubic", antialias=True).clamp_(0, 1)


def one_by_one(images: np.ndarray, change) -> torch.Tensor:
    """Planes (n, C, h, w) in [0, 1]: `change` applied to each image as a PIL colour image.

    Grey images become grey again.
    """
    from PIL import Image

    grey = images.shape[3] == 1
    pictures = [change(Image.fromarray(image.repeat(3, 2) if grey else image)) for image in images]
    planes = torch.stack(pictures)
    return planes[:, :1] if grey else planes


def _contrast(size: tuple[int, int], area: float):
    """SimCLR's changes (Chen et al. 2020, appendix A), for a PIL picture."""
    from torchvision.transforms import v2

    changes = [
        v2.PILToTensor(),
        v2.RandomResizedCrop(size, scale=(area, 1.0), antialias=True),
        v2.RandomHorizontalFlip(),
        v2.RandomApply([v2.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
        v2.RandomGrayscale(p=0.2),
    ]
    if min(size) >= _BLUR_FROM:
        kernel = math.ceil(min(size) / 10) // 2 * 2 + 1
        changes.append(v2.RandomApply([v2.GaussianBlur(kernel, (0.1, 2.0))], p=0.5))
    return v2.Compose([*changes, v2.ToDtype(torch.float32, scale=True)])


@contextlib.contextmanager
def _seeded(seeds: np.random.Generator) -> Iterator[None]:
    """Seed what the transforms of timm and torchvision draw from, and leave it afterwards as it was."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002, timm draws from it
    seed = int(seeds.integers(1 << 32))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002


def _warped(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Shift, rotate and resize each image a little, and add noise; (n, C, H, W) in [0, 1]."""

    def spread(size: float, *shape: int) -> torch.Tensor:
        return size * (2 * torch.rand(len(images), *shape, generator=generator) - 1)

    angle, zoom, shift = spread(_ROTATION), 1 + spread(_ZOOM), spread(_SHIFT, 2)
    cos, sin = zoom * torch.cos(angle), torch.sin(angle)
    affine = torch.stack([cos, -sin, shift[:, 0], sin, cos, shift[:, 1]], 1).view(-1, 2, 3)
    grid = functional.affine_grid(affine, list(images.shape), align_corners=False)
    moved = functional.grid_sample(images, grid, align_corners=False)
    return (moved + _NOISE * torch.randn(moved.shape, generator=generator)).clamp(0, 1)
