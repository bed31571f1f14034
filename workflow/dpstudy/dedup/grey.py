"""Small grey squares of one size from images of any size and colour."""

import numpy as np

LARGEST_SIDE = 16
LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R BT.601


def common_side(*shapes: tuple[int, int, int]) -> int:
    """The side of the grey squares for comparing images of these shapes (H, W, C), so that none is enlarged."""
    return min(LARGEST_SIDE, *(min(shape[:2]) for shape in shapes))


def grey_squares(images: np.ndarray, side: int) -> np.ndarray:
    """(n, side, side) float32 grey levels of images (n, H, W, C) uint8, antialiased."""
    weights = LUMA if images.shape[3] == 3 else np.full(images.shape[3], 1 / images.shape[3], np.float32)
    grey = sum(images[..., channel] * weights[channel] for channel in range(images.shape[3]))
    rows, columns = resampling(images.shape[1], side), resampling(images.shape[2], side)
    return rows @ grey @ columns.T  # one small product an image, so that no image's result depends on the others


def resampling(source: int, target: int) -> np.ndarray:
    """A (target, source) matrix of triangular resampling weights.

    It interpolates linearly where target > source and averages smoothly otherwise; it is the identity where they are
    equal.
    """
    scale = source / target
    centres = (np.arange(target) + 0.5) * scale
    weights = np.maximum(0, 1 - np.abs(np.arange(source) + 0.5 - centres[:, None]) / max(scale, 1))
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
