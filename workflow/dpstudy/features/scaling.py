"""Input scaling from grey levels 0..255 to an extractor's input range."""

import math

import numpy as np

from dpstudy.core.errors import StudyError

CONSTANTS = {  # mean and standard deviation of RGB channels: printed numbers, of ImageNet and of CIFAR-10
    "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "symmetric": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "cifar": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
}
_OPPONENT = np.array([[1, 1, 1], [1, -1, 0], [1, 1, -2]], np.float32)
_OPPONENT /= np.linalg.norm(_OPPONENT, axis=1, keepdims=True)
SCALINGS = (*CONSTANTS, "opponent")
_ANY_CHANNELS = ("unit", "symmetric")


def check_scaling(scaling: str, channels: int) -> None:
    """Check that `scaling` exists and suits images with this number of channels.

    Raises:
        StudyError: it does not.
    """
    if scaling not in SCALINGS:
        raise StudyError(f"scaling {scaling!r} does not exist; there are {', '.join(SCALINGS)}")
    if scaling not in _ANY_CHANNELS and channels != 3:
        raise StudyError(f"scaling {scaling!r} needs 3 channels (RGB), the images have {channels}; use 'unit'")


def scale(images: np.ndarray, scaling: str) -> np.ndarray:
    """Images (n, H, W, C) of grey levels 0..255, scaled to float32.

    The range is [0, 1] (`unit`) or [-1, 1] (`symmetric`), or they are standardised per channel.

    The means and standard deviations are those of ImageNet's RGB channels (`imagenet`), public constants, or those of
    CIFAR-10's (`cifar`): where CIFAR-10 is private, its ledgers say so. `opponent`: (x - 0.5) / 0.25 turned to three
    orthonormal axes, luminance, red against green, and yellow against blue; filters then see brightness and colour
    apart.
    """
    scaled = images.astype(np.float32) / 255
    if scaling == "unit":
        return scaled
    if scaling == "opponent":
        return (scaled - 0.5) / 0.25 @ _OPPONENT.T
    mean, std = (np.array(values[: images.shape[3]], np.float32) for values in CONSTANTS[scaling])
    return (scaled - mean) / std


def constants(scaling: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Center and scale (C H W,) float32, for which (x - center) * scale is `scaling` applied to grey levels x.

    Raises:
        StudyError: the scaling mixes channels, or does not suit their number.
    """
    if scaling not in CONSTANTS:
        raise StudyError(f"scaling {scaling!r}: images that are read as they are take {', '.join(CONSTANTS)}")
    check_scaling(scaling, shape[0])
    mean, std = (np.array(values[: shape[0]], np.float64) for values in CONSTANTS[scaling])
    pixels = math.prod(shape[1:])
    center, scale = (np.repeat(values, pixels).astype(np.float32) for values in (255 * mean, 1 / (255 * std)))
    return center, scale


def standardised(planes, scaling):
    """Planes (n, C, H, W) of a torch tensor in [0, 1], scaled as by `scale`.

    Args:
        scaling: a name, or the means and the standard deviations of the channels.
    """
    import torch

    def constant(values):
        return torch.tensor(values, dtype=planes.dtype, device=planes.device)

    if isinstance(scaling, str):
        check_scaling(scaling, planes.shape[1])
    if scaling == "unit":
        return planes
    if scaling == "opponent":
        return torch.einsum("ac,nchw->nahw", constant(_OPPONENT), (planes - 0.5) / 0.25)
    mean, std = (values[: planes.shape[1]] for values in (CONSTANTS[scaling] if isinstance(scaling, str) else scaling))
    return (planes - constant(mean).view(-1, 1, 1)) / constant(std).view(-1, 1, 1)
