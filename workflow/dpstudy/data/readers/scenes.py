"""Synthetic images of labelled objects on synthetic backgrounds, independent of any data set, for pre-training.

A kind of thing has an outline, two colours and a pattern of its own, drawn once by chance; its pictures differ in
place, size, pose, light, tint and background (dead_leaves). A network that tells kinds apart learns edges, colours,
patterns and shapes before it sees a private image: a prior from random processes (Baradad et al. 2021; Tang et al.
2023). Image i depends on (seed, i) only, and is of kind i modulo `kinds`. The ranges below were set once, by eye; none
was tuned on accuracy.
"""

from pathlib import Path

import numpy as np

from dpstudy.data.reader import Declared, Reader
from dpstudy.data.readers import dead_leaves
from dpstudy.data.readers.drawn import Drawn

READER = Declared(keys=("count", "seed", "size", "channels", "kinds"), shape=(32, 32, 3), drawn=True)

_OVERSAMPLING = 3  # drawn pixels per image pixel and axis
_KINDS = 32
_OUTLINE = 8  # harmonics of an outline


def open(options: dict, data_root: Path) -> Reader:
    """Open the synthetic images; options count, seed, size ([32, 32]), channels (3; 1 for grey) and kinds (32)."""
    seed = options.get("seed", 0)

    def draw(random: np.random.Generator, size: tuple[int, int], channels: int, kind: int) -> np.ndarray:
        # 2**32: no picture's number
        return draw_kind(random, size, channels, np.random.default_rng([seed, 2**32, kind]))

    options = {"size": [32, 32], "channels": 3, "kinds": _KINDS} | options
    return Drawn("scenes", draw, options)


def draw_kind(
    random: np.random.Generator, size: tuple[int, int], channels: int, kind: np.random.Generator
) -> np.ndarray:
    """One image (H, W, channels) uint8; `kind` draws what a class has in common, `random` everything else."""
    picture = dead_leaves.draw(random, size, 3).astype(np.float32)
    amplitudes = kind.normal(0, 0.35, _OUTLINE) / np.arange(1, _OUTLINE + 1)
    phases = kind.uniform(0, 2 * np.pi, _OUTLINE)
    stretch, colours = kind.uniform(0.45, 1), kind.uniform(20, 235, (2, 3))
    frequency, angle, pattern = kind.uniform(1, 5), kind.uniform(0, np.pi), kind.integers(4)

    side = min(size) * _OVERSAMPLING
    rows, columns = np.mgrid[0 : size[0] * _OVERSAMPLING, 0 : size[1] * _OVERSAMPLING].astype(np.float32)
    place = random.uniform(-0.18, 0.18, 2) * side
    down = (rows - rows.mean() - place[0]) / (side / 2)
    across = (columns - columns.mean() - place[1]) / (side / 2)
    turn, radius = random.normal(0, 0.3), random.uniform(0.55, 0.95)
    if random.uniform() < 0.5:
        across = -across
    x = (across * np.cos(turn) - down * np.sin(turn)) / radius
    y = (across * np.sin(turn) + down * np.cos(turn)) / radius / stretch

    direction = np.arctan2(y, x)
    outline = sum(a * np.cos((k + 1) * direction + p) for k, (a, p) in enumerate(zip(amplitudes, phases, strict=True)))
    inside = (np.hypot(x, y) < np.exp(outline - np.abs(amplitudes).sum() / 2)).astype(np.float32)
    along, beside = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    wave = np.sin(np.pi * frequency * along + random.uniform(0, 0.5))
    share = (
        np.full_like(wave, 0.5),
        wave,
        wave * np.sin(np.pi * frequency * beside),
        np.clip(along, -1, 1),
    )[pattern]
    share = (1 + share[..., None]) / 2
    light = random.uniform(0.6, 1.2) * (1 + 0.25 * (x * random.normal() + y * random.normal()))[..., None]
    thing = (share * colours[0] + (1 - share) * colours[1] + random.normal(0, 45, 3)) * np.clip(light, 0.3, 1.5)

    inside, thing = _shrunk(inside[..., None], size), _shrunk(thing * inside[..., None], size)
    picture = picture * (1 - inside) + thing
    if channels == 1:
        picture = picture.mean(2, keepdims=True)
    return np.clip(picture, 0, 255).astype(np.uint8)


def _shrunk(values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Means over the drawn pixels of each image pixel."""
    shape = (size[0], _OVERSAMPLING, size[1], _OVERSAMPLING, values.shape[2])
    return values.reshape(shape).mean((1, 3))
