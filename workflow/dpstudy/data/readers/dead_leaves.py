"""Synthetic images, independent of any data set: "dead leaves", opaque shapes of random position, size and colour.

Images of natural scenes have edges at all scales because things hide things; the "dead leaves" model imitates just
that (Lee, Mumford and Huang 2001). Baradad et al. (2021) learn features from it; here the second moments of handmade
features on such pictures serve to scale and rotate them, where tramer2021 pays for private moments. Image i depends on
(seed, i) only. The ranges below were set once, by eye; none was tuned on accuracy.
"""

from pathlib import Path

import numpy as np

from dpstudy.data.reader import Declared, Reader
from dpstudy.data.readers.drawn import Drawn

READER = Declared(keys=("count", "seed", "size", "channels"), shape=(32, 32, 3), drawn=True)

_OVERSAMPLING = 3  # drawn pixels per image pixel and axis
_SHAPES = (30, 200)  # at least, fewer than
_SMALLEST, _LARGEST = 0.03, 0.8  # radii as shares of the side; between them their density falls with the cube
_CORNERS = 24  # of the polygon that stands for an ellipse


def open(options: dict, data_root: Path) -> Reader:
    """Open the synthetic images; options count, seed, size ([32, 32]) and channels (3; 1 for grey); no location."""
    return Drawn("dead_leaves", draw, {"size": [32, 32], "channels": 3} | options)


def draw(random: np.random.Generator, size: tuple[int, int], channels: int) -> np.ndarray:
    """One image (H, W, channels) uint8."""
    from PIL import Image, ImageDraw

    height, width = (side * _OVERSAMPLING for side in size)
    side = max(height, width)
    canvas = Image.new("RGB", (width, height))
    pen = ImageDraw.Draw(canvas)
    middle, tint = random.normal(0.47, 0.2), random.normal(0, 0.08, 3)
    for number in range(random.integers(*_SHAPES) + 1):  # the first covers the picture, the last lies on top
        radius = 2 * side if number == 0 else side * min(_LARGEST, _SMALLEST * random.uniform() ** -0.5)
        colour = middle + random.normal(0, 0.25) + tint + random.normal(0, 0.07, 3)
        outline = _outline(random, radius) + random.uniform(-0.1, 1.1, 2) * (width, height)
        fill = tuple(int(value) for value in np.clip(colour, 0, 1) * 255)
        pen.polygon([tuple(point) for point in outline], fill=fill)
    picture: np.ndarray = np.asarray(canvas.resize(size[::-1], Image.Resampling.BOX), np.float32)
    picture = picture * random.uniform(0.5, 1) + random.normal(0, 15) + random.normal(0, 3, picture.shape)
    if channels == 1:
        picture = picture.mean(2, keepdims=True)
    return np.clip(picture, 0, 255).astype(np.uint8)


def _outline(random: np.random.Generator, radius: float) -> np.ndarray:
    """The corners (c, 2) of an ellipse or a rectangle around 0, turned by a random angle."""
    other, angle = radius * random.uniform(0.5, 1), random.uniform(0, np.pi)
    if random.uniform() < 0.5:
        turn = np.linspace(0, 2 * np.pi, _CORNERS, endpoint=False)
        points = np.stack([radius * np.cos(turn), other * np.sin(turn)], 1)
    else:
        points = np.array([[-radius, -other], [radius, -other], [radius, other], [-radius, other]])
    turned = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return points @ turned
