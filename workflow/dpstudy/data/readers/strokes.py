"""Synthetic scribbles, independent of any data set: one to three smooth pen strokes, white on black.

They have the edges and line widths of pen strokes and no letter or digit: their second moments scale and rotate the
features of handwriting, where tramer2021 pays for private moments. Image i depends on (seed, i) only. The ranges below
were set once, by eye; none was tuned on accuracy.
"""

from pathlib import Path

import numpy as np

from dpstudy.data.reader import Declared, Reader
from dpstudy.data.readers.drawn import Drawn

READER = Declared(keys=("count", "seed", "size"), shape=(28, 28, 1), drawn=True)

_OVERSAMPLING = 4  # drawn pixels per image pixel and axis
_POINTS = 40  # of each stroke


def open(options: dict, data_root: Path) -> Reader:
    """Open the synthetic scribbles; options count, seed and size ([28, 28]); no location."""
    return Drawn("strokes", draw, {"size": [28, 28], "channels": 1} | options)


def draw(random: np.random.Generator, size: tuple[int, int], channels: int) -> np.ndarray:
    """One image (H, W, 1) uint8."""
    from PIL import Image, ImageDraw

    extent = np.array(size[::-1]) * _OVERSAMPLING  # x, y
    canvas = Image.new("L", (int(extent[0]), int(extent[1])), 0)
    pen = ImageDraw.Draw(canvas)
    for _ in range(random.integers(1, 4)):
        control = np.clip(extent / 2 + random.normal(0, 0.2, (4, 2)) * extent, 0.15 * extent, 0.85 * extent)
        course = _bezier(control)
        thickness = random.uniform(1 / 18, 1 / 8) * extent.min()
        pen.line([tuple(point) for point in course], fill=255, width=int(thickness), joint="curve")
        for x, y in course[[0, -1]]:  # round ends
            pen.ellipse([x - thickness / 2, y - thickness / 2, x + thickness / 2, y + thickness / 2], fill=255)
    return np.asarray(canvas.resize(size[::-1], Image.Resampling.BOX))[..., None]


def _bezier(control: np.ndarray) -> np.ndarray:
    """Points (p, 2) of the cubic curve of four control points (4, 2)."""
    t = np.linspace(0, 1, _POINTS)[:, None]
    weights = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
    return sum(weight * point for weight, point in zip(weights, control, strict=True))
