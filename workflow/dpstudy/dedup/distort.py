"""Image alterations for calibrating de-duplication, as in public collections: flips, shifts, compression and so on."""

import io
from collections.abc import Callable
from typing import Literal

import numpy as np

_SHIFT, _KEPT, _ANGLE = 4, 0.8, 8.0  # pixels of 32, part of each side, degrees
_GAIN, _OFFSET = 0.3, 20.0

Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def changes() -> dict[str, Change]:
    """Name -> the function that alters an image (H, W, C) uint8 and keeps its shape."""
    return {
        "exact": lambda image, random: image,
        "flip": lambda image, random: np.ascontiguousarray(image[:, ::-1]),
        "shift": _shift,
        "resize": _resize,
        "jpeg-75": lambda image, random: _jpeg(image, 75),
        "jpeg-50": lambda image, random: _jpeg(image, 50),
        "crop": _crop,
        "brightness": _brightness,
        "rotation": _rotate,
    }


def changed(images: np.ndarray, change: Change, seed: int) -> np.ndarray:
    """(n, H, W, C) uint8 images, each altered independently."""
    random = np.random.default_rng(seed)
    return np.stack([change(image, random) for image in images])


def _shift(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """By up to an eighth of each side; what comes in is black or repeats the border."""
    height, width = image.shape[:2]
    reach = max(1, _SHIFT * min(height, width) // 32)
    down, right = random.integers(0, 2 * reach + 1, 2)
    mode: Literal["edge", "constant"] = "edge" if random.random() < 0.5 else "constant"
    return np.pad(image, ((reach, reach), (reach, reach), (0, 0)), mode)[down : down + height, right : right + width]


def _resize(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """To three quarters, one and a half or twice the size, and back."""
    height, width = image.shape[:2]
    factor = random.choice([0.75, 1.5, 2.0])
    return _array(_picture(image).resize((round(width * factor), round(height * factor)), 3).resize((width, height), 3))


def _jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    from PIL import Image

    file = io.BytesIO()
    _picture(image).save(file, "JPEG", quality=quality)
    return _array(Image.open(file))


def _crop(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Four fifths of each side, at its own size again."""
    height, width = image.shape[:2]
    inner, across = round(height * _KEPT), round(width * _KEPT)
    top, left = random.integers(0, height - inner + 1), random.integers(0, width - across + 1)
    return _array(_picture(image[top : top + inner, left : left + across]).resize((width, height), 3))


def _brightness(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
    gain, offset = random.uniform(1 - _GAIN, 1 + _GAIN), random.uniform(-_OFFSET, _OFFSET)
    return np.clip(np.rint(image * gain + offset), 0, 255).astype(np.uint8)


def _rotate(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return _array(_picture(image).rotate(random.uniform(-_ANGLE, _ANGLE), 3))


def _picture(image: np.ndarray):
    from PIL import Image

    return Image.fromarray(np.ascontiguousarray(image[..., 0] if image.shape[2] == 1 else image))


def _array(picture) -> np.ndarray:
    array = np.asarray(picture)
    return array[..., None] if array.ndim == 2 else array
