"""Deskewing: a bright figure on black is centred and sheared until its strokes are upright.

A rule for one picture by itself, so it costs no privacy; handwriting differs by slant much more than by meaning (LeCun
et al. 1998 deskew digits for their linear classifiers).
"""

import numpy as np

from dpstudy.core.errors import StudyError

_STEEPEST = 1.0  # columns per row: 45 degrees; a line that lies flat has no slant to speak of


def deskew(images: np.ndarray) -> np.ndarray:
    """Images (n, H, W, 1) of any numeric type, deskewed with bilinear interpolation: the same shape, float32.

    Brightness counts as mass: its centre comes to the middle of the picture, and the covariance of rows and columns to
    zero, or as near as a shear of 45 degrees brings it. Black comes in from outside; a black picture stays black.

    Raises:
        StudyError: the images have colours: there, brightness says nothing about figure and ground.
    """
    check_grey(images.shape[3])
    mass = images[..., 0].astype(np.float32)
    n, height, width = mass.shape
    rows, columns = np.arange(height, dtype=np.float32), np.arange(width, dtype=np.float32)
    total = np.maximum(mass.sum((1, 2)), 1e-6)
    row = mass.sum(2) @ rows / total
    column = mass.sum(1) @ columns / total
    from_row, from_column = rows - row[:, None], columns - column[:, None]
    covariance = np.einsum("nij,ni,nj->n", mass, from_row, from_column) / total
    variance = np.einsum("nij,ni->n", mass, from_row**2) / total
    slant = np.clip(covariance / np.maximum(variance, 1e-6), -_STEEPEST, _STEEPEST)
    # where each pixel of the result comes from
    down, across = rows - (height - 1) / 2, columns - (width - 1) / 2
    y = np.broadcast_to((row[:, None] + down)[:, :, None], mass.shape)
    x = (column[:, None] + slant[:, None] * down)[:, :, None] + across
    result = _bilinear(mass, y, x)
    return np.where((mass > 0).any((1, 2), keepdims=True), result, mass)[..., None]


def check_grey(channels: int) -> None:
    """Check that images with this number of channels can be deskewed.

    Raises:
        StudyError: they cannot.
    """
    if channels != 1:
        raise StudyError(f"deskew is for grey figures on black, the images have {channels} channels; leave it out")


def _bilinear(maps: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Maps (n, H, W) at the places y, x (n, H, W), in pixels; 0 outside."""
    n, height, width = maps.shape
    padded = np.pad(maps, ((0, 0), (1, 1), (1, 1)))
    y, x = np.clip(y + 1, 0, height + 1), np.clip(x + 1, 0, width + 1)
    top, left = np.minimum(y.astype(np.int32), height), np.minimum(x.astype(np.int32), width)
    below, right = y - top, x - left
    image = np.arange(n)[:, None, None]
    upper = padded[image, top, left] * (1 - right) + padded[image, top, left + 1] * right
    lower = padded[image, top + 1, left] * (1 - right) + padded[image, top + 1, left + 1] * right
    return (upper * (1 - below) + lower * below).astype(np.float32)
