"""Small squares of one size from images of any size, on which copies are compared."""

import numpy as np

from dpstudy.dedup.grey import LUMA, resampling

SIDE = 32


def thumbnails(images: np.ndarray) -> np.ndarray:
    """(n, 32, 32, C) uint8 thumbnails of images (n, H, W, C) uint8: antialiased when reduced, linear when enlarged."""
    rows, columns = resampling(images.shape[1], SIDE), resampling(images.shape[2], SIDE)
    planes = images.transpose(0, 3, 1, 2).astype(np.float32)
    return np.rint(rows @ planes @ columns.T).astype(np.uint8).transpose(0, 2, 3, 1)


def grey(images: np.ndarray) -> np.ndarray:
    """(n, H, W, 1) uint8 grey levels of (n, H, W, C) uint8; grey images are unchanged."""
    if images.shape[3] == 1:
        return images
    weights = LUMA if images.shape[3] == 3 else np.full(images.shape[3], 1 / images.shape[3], np.float32)
    return np.rint(images @ weights).astype(np.uint8)[..., None]


def zoomed(images: np.ndarray, factor: float) -> np.ndarray:
    """(n, H, W, C) uint8 images enlarged about their centre by `factor`; outside the image, its border is repeated."""
    import torch
    from torch.nn.functional import affine_grid, grid_sample

    planes = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2))).float()
    theta = torch.tensor([[1 / factor, 0, 0], [0, 1 / factor, 0]]).expand(len(images), 2, 3)
    grid = affine_grid(theta, list(planes.shape), align_corners=False)
    enlarged = grid_sample(planes, grid, mode="bicubic", padding_mode="border", align_corners=False)
    return np.rint(enlarged.clamp(0, 255).numpy()).astype(np.uint8).transpose(0, 2, 3, 1)
