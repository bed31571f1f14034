"""Synthetic images, independent of any data set: one textured object with a random outline on black.

The pattern is dead_leaves' picture, the outline a smooth closed curve around the middle. Photographs of single things
that were cut out, such as Fashion-MNIST's, have such edges: strong at the outline, weaker within, none outside. Image i
depends on (seed, i) only. The ranges below were set once, by eye; none was tuned on accuracy.
"""

from pathlib import Path

import numpy as np

from dpstudy.data.reader import Declared, Reader
from dpstudy.data.readers import dead_leaves
from dpstudy.data.readers.drawn import Drawn

READER = Declared(keys=("count", "seed", "size", "channels"), shape=(28, 28, 1), drawn=True)

_OVERSAMPLING = 4  # drawn pixels per image pixel and axis
_CORNERS = 96  # of the polygon that stands for the outline
_HARMONICS = np.arange(1, 6)


def open(options: dict, data_root: Path) -> Reader:
    """Open the synthetic images; options count, seed, size ([28, 28]) and channels (1; 3 for colour); no location."""
    return Drawn("cutouts", draw, {"size": [28, 28], "channels": 1} | options)


def draw(random: np.random.Generator, size: tuple[int, int], channels: int) -> np.ndarray:
    """One image (H, W, channels) uint8."""
    from PIL import Image, ImageDraw

    pattern = dead_leaves.draw(random, size, channels)
    extent = np.array(size[::-1]) * _OVERSAMPLING  # x, y
    canvas = Image.new("L", (int(extent[0]), int(extent[1])), 0)
    ImageDraw.Draw(canvas).polygon([tuple(point) for point in extent / 2 * (1 + _outline(random))], fill=255)
    inside = np.asarray(canvas.resize(size[::-1], Image.Resampling.BOX), np.float32) / 255
    return (pattern * inside[..., None]).astype(np.uint8)


def _outline(random: np.random.Generator) -> np.ndarray:
    """The corners (c, 2) of a closed curve around 0: an ellipse within [-0.9, 0.9], bent by a few harmonics."""
    turn = np.linspace(0, 2 * np.pi, _CORNERS, endpoint=False)
    axes = random.uniform(0.4, 1, 2)
    height, phase = random.normal(0, 0.25, 5) / _HARMONICS, random.uniform(0, 2 * np.pi, 5)
    radius = 0.9 * np.exp(np.cos(np.outer(turn, _HARMONICS) + phase) @ height)
    return radius[:, None] * axes * np.stack([np.cos(turn), np.sin(turn)], 1)
