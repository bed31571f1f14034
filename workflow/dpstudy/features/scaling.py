"""Input scaling: from grey levels 0..255 to what an extractor takes."""

import numpy as np

from dpstudy.errors import StudyError

_IMAGENET_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_IMAGENET_STD = np.array([0.229, 0.224, 0.225], np.float32)
_OPPONENT = np.array([[1, 1, 1], [1, -1, 0], [1, 1, -2]], np.float32)
_OPPONENT /= np.linalg.norm(_OPPONENT, axis=1, keepdims=True)
SCALINGS = ("unit", "imagenet", "opponent")


def check_scaling(scaling: str, channels: int) -> None:
    """Check that `scaling` exists and suits images of so many channels.

    Raises:
        StudyError: it does not.
    """
    if scaling not in SCALINGS:
        raise StudyError(f"scaling {scaling!r} does not exist; there are {', '.join(SCALINGS)}")
    if scaling != "unit" and channels != 3:
        raise StudyError(f"scaling {scaling!r} needs 3 channels (RGB), the images have {channels}; use 'unit'")


def scale(images: np.ndarray, scaling: str) -> np.ndarray:
    """Images (n, H, W, C) uint8 as float32.

    `unit`: in [0, 1]. `imagenet`: then standardised by the mean and standard deviation of ImageNet's RGB channels,
    which are public constants. `opponent`: (x - 0.5) / 0.25 turned to three orthonormal axes, luminance, red against
    green, and yellow against blue; filters then see brightness and colour apart.
    """
    scaled = images.astype(np.float32) / 255
    if scaling == "imagenet":
        return (scaled - _IMAGENET_MEAN) / _IMAGENET_STD
    return (scaled - 0.5) / 0.25 @ _OPPONENT.T if scaling == "opponent" else scaled
