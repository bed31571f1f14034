"""Whitened image patches from public images, as filters for models/patches.py."""

from collections.abc import Mapping

import numpy as np
import torch

from dpstudy.core.errors import StudyError
from dpstudy.features.scaling import standardised as scaled
from dpstudy.models.patches import Patches, standardised
from dpstudy.pretraining.pictures import planes_of, resized
from dpstudy.pretraining.rows import PublicRows

_ROWS = 512  # pictures at once
_FLAT = 1e-3  # of a patch's variance, below which there is nothing in it to see


def cut(rows: PublicRows, options: Mapping, size: tuple[int, int], channels: int) -> Patches:
    """The patch network for images (H, W, C), with filters cut from public images.

    Args:
        rows: public rows.
        options: a backbone's, with `sizes`, `filters`, `patches` (how many tell the whitening), `floor` (added to its
            variances, of patches that have variance 1) and `seed`.

    Raises:
        StudyError: the pictures are smaller than a patch, or too few of their patches show anything.
    """
    network = Patches.of(options, channels)
    network.threshold.fill_(options["threshold"])
    if max(options["sizes"]) > min(size):
        raise StudyError(
            f"sizes: patches of {max(options['sizes'])} pixels do not fit into pictures of {size[0]}x{size[1]}"
        )
    each = -(-options["patches"] // len(rows))
    for number, side in enumerate(options["sizes"]):
        drawn = np.random.default_rng([options["seed"], number])
        patches = torch.cat([_some(planes, side, each, drawn) for planes in _planes(rows, options["scaling"], size)])
        patches = patches[torch.from_numpy(drawn.permutation(len(patches))[: options["patches"]])]
        if len(patches) < max(options["filters"], 2):
            raise StudyError(
                f"filters: {options['filters']} of {len(patches)} patches that show anything; ask for fewer"
            )
        mean, whitening = _whitening(patches, options["floor"])
        filters = (patches[: options["filters"]].double() - mean) @ whitening
        filters = filters / filters.norm(dim=1, keepdim=True) @ whitening
        for parameter, values in zip(network.of_size(side), (filters, filters @ mean), strict=True):
            parameter.copy_(values)
    return network


def _planes(rows: PublicRows, scaling: str, size: tuple[int, int]):
    for records in rows.batches(_ROWS):
        yield scaled(resized(planes_of(records.images), size), scaling)


def _some(planes: torch.Tensor, side: int, each: int, drawn: np.random.Generator) -> torch.Tensor:
    """(p, C s s) standardised patches from places that are drawn, `each` a picture, without those that show nothing."""
    rows, columns = (drawn.integers(length - side + 1, size=(len(planes), each)) for length in planes.shape[2:])
    patches = torch.stack([
        planes[picture, :, row : row + side, column : column + side].reshape(-1)
        for picture, (down, right) in enumerate(zip(rows, columns, strict=True))
        for row, column in zip(down, right, strict=True)
    ])  # fmt: skip
    patches = patches[patches.var(1, correction=0) > _FLAT]
    return standardised(patches.T).T


def _whitening(patches: torch.Tensor, floor: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(mean (d,), symmetric (d, d)): what patches are moved and multiplied by, to have nearly unit covariance."""
    wide = patches.double()
    mean = wide.mean(0)
    values, vectors = torch.linalg.eigh((wide - mean).T @ (wide - mean) / len(wide))
    return mean, (vectors / (values.clamp_min(0) + floor).sqrt()) @ vectors.T
