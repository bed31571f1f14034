"""Decoding image files into uint8 arrays of one shape, and mosaics of equal tiles."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.held import Source
from dpstudy.data.image_files import GREY_MODES, opened, shown
from dpstudy.data.windows import window_of

MOSAIC_COLUMNS = 10


def decode(
    path: Source, where: str, size: tuple[int, int] | None, channels: int | None, crop: bool = False, **how: Any
) -> np.ndarray:
    """An image file as (H, W, C) uint8, resized (bilinear) to `size` and converted to `channels`.

    Where `size` or `channels` is None, the image keeps its own. With `crop` the aspect is kept: the image is made as
    small as covers `size`, and its middle is taken; else it is stretched. `how`, which picture of the file and through
    which window, goes to `image_files.opened`.

    Raises:
        UnreadableImageError: the file is missing or damaged.
        StudyError: it has more than 8 bits a channel and no window, or several pictures and none is chosen.
    """
    from PIL import Image, ImageOps

    with opened(path, where, **how) as file:
        grey = file.mode in GREY_MODES if channels is None else channels == 1
        image, mode = shown(file), "L" if grey else "RGB"
        if image.mode != mode:  # else another copy of a large image
            image = image.convert(mode)
        if size is not None and image.size != (size[1], size[0]):
            wanted = size[1], size[0]
            kind = Image.Resampling.BILINEAR
            image = ImageOps.fit(image, wanted, kind) if crop else image.resize(wanted, kind)
        pixels = np.asarray(image)
    return pixels[..., np.newaxis] if grey else pixels


def decode_all(paths: Sequence[Source], where: list[str], **how: Any) -> np.ndarray:
    """Images of one shape as (n, H, W, C) uint8, n >= 1; `how` goes to `decode`.

    Raises:
        StudyError: as for `decode`, or an image's shape differs from the first one's.
        ValueError: there is none.
    """
    images = None
    for row, (path, place) in enumerate(zip(paths, where, strict=True)):
        image = decode(path, place, **how)
        if images is None:
            images = np.empty((len(paths), *image.shape), np.uint8)
        if image.shape != images.shape[1:]:
            raise StudyError(
                f"{place}: {path} has shape {image.shape}, but {paths[0].name} has {images.shape[1:]};"
                " give `size` and `channels` to bring them to one shape"
            )
        images[row] = image
    if images is None:
        raise ValueError("there is no image to decode")
    return images


def image_options(options: dict, resize: str = "stretch") -> dict[str, Any]:
    """The keyword arguments of `decode` for a data set's config entry.

    Args:
        resize: stretch or crop, where the option `resize` is absent.

    Raises:
        StudyError: `size` is not [H, W], `channels` neither 1 nor 3, or `window` neither `file` nor two numbers.
    """
    channels = options.get("channels")
    if channels not in (None, 1, 3):
        raise StudyError(f"channels: {channels!r} is neither 1 (grey) nor 3 (RGB)")
    given = {key: options[key] for key in ("frame", "max_pixels") if key in options}
    if (window := window_of(options)) is not None:
        given["window"] = window
    crop = options.get("resize", resize) == "crop"
    return {"size": pair(options, "size"), "channels": channels, "crop": crop} | given


def pair(options: dict, key: str) -> tuple[int, int] | None:
    """The option `key` as (height, width); None where absent.

    Raises:
        StudyError: it is not two positive integers.
    """
    value = options.get(key)
    if value is None:
        return None
    if not isinstance(value, list | tuple) or len(value) != 2 or any(type(v) is not int or v < 1 for v in value):
        raise StudyError(f"{key}: {value!r} is not [height, width] in pixels")
    return value[0], value[1]


class Mosaic:
    """Equal tiles in lossless images, 10 per row, in row-major order; the first image's tiles come first.

    Only headers are read here, and `read` decodes only the images that hold the tiles asked for.

    Raises:
        StudyError: an image is missing or damaged, or is not 10 tiles wide and a whole number of tiles high.
    """

    def __init__(self, paths: list[Path], tile: tuple[int, int], max_pixels: int | None = None):
        self._paths, self._tile, self._max_pixels = paths, tile, max_pixels
        self._counts, modes = [], []
        for path in paths:
            with opened(path, "mosaic", max_pixels=max_pixels) as image:
                (width, height), mode = image.size, image.mode
            if mode not in ("L", "RGB"):
                raise StudyError(f"{path}: a mosaic of mode {mode}; it must be 8-bit grey or RGB")
            if width != MOSAIC_COLUMNS * tile[1] or height % tile[0]:
                raise StudyError(
                    f"{path}: {height}x{width} pixels are not {MOSAIC_COLUMNS} tiles of {tile[0]}x{tile[1]} wide"
                    " and a whole number of tiles high"
                )
            self._counts.append(MOSAIC_COLUMNS * height // tile[0])
            modes.append(mode)
        differing = next((path for path, mode in zip(paths, modes, strict=True) if mode != modes[0]), None)
        if differing is not None:
            raise StudyError(f"{differing}: grey and RGB mosaics are mixed; {paths[0].name} is {modes[0]}")
        self.shape = (*tile, 1 if modes[0] == "L" else 3)

    def check_rows(self, rows: int, where: str) -> None:
        """Check that there are as many tiles as `rows`; only the last row of tiles may be incomplete.

        Raises:
            StudyError: naming `where` and both numbers.
        """
        tiles = sum(self._counts)
        if not tiles - MOSAIC_COLUMNS < rows <= tiles:
            raise StudyError(
                f"{where}: {rows} rows for {tiles} tiles ({self._paths[0].name} to {self._paths[-1].name})"
            )

    def read(self, indices: np.ndarray) -> np.ndarray:
        """The tiles at `indices` as (n, H, W, C) uint8."""
        indices = np.asarray(indices, np.int64)
        height, width, channels = self.shape
        tiles = np.empty((len(indices), *self.shape), np.uint8)
        start = 0
        for path, count in zip(self._paths, self._counts, strict=True):
            here = np.flatnonzero((indices >= start) & (indices < start + count))
            if len(here):
                where = f"mosaic with rows {start} to {start + count - 1}"
                with opened(path, where, max_pixels=self._max_pixels) as image:
                    pixels = np.asarray(shown(image))
                if pixels.shape[1] != width * MOSAIC_COLUMNS:
                    raise StudyError(f"{path}: its EXIF tag turns it, and a mosaic must lie as it is seen; save it so")
                grid = pixels.reshape(-1, height, MOSAIC_COLUMNS, width, channels).swapaxes(1, 2)
                tiles[here] = grid.reshape(-1, *self.shape)[indices[here] - start]
            start += count
        return tiles
