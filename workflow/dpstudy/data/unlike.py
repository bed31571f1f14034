"""Warnings about images unlike the training images of a model, whose scores may be meaningless."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from dpstudy.data.dicom import header, is_dicom
from dpstudy.data.held import Source
from dpstudy.data.image_files import GREY_MODES, depth, opened

_COLOUR = 16  # of 255: what channels of a grey picture differ by at most, after a lossy format
_LOOKED_AT = 64  # pixels a side


def unlike(path: Source, where: str, size: tuple[int, int], channels: int, **how: Any) -> Iterator[str]:
    """The ways in which an image differs from a model's training images, each as the end of a sentence.

    Args:
        size, channels: of what the model takes.
        how: what else `data.images.decode` is told: `window` says that the model learned from more than 8 bits.

    Raises:
        StudyError: as of `decode`.
    """
    open_image = partial(opened, path, where, how.get("frame"), how.get("max_pixels"), how.get("window"))
    if is_dicom(path):
        (height, width), bits, grey = header(path, where)
        few = bits <= 8
    else:
        with open_image() as image:
            (width, height), grey = image.size, image.mode in GREY_MODES
            few = image.format is not None and depth(image, path)[0] <= 8
    if how.get("window") is not None and few:
        yield "has 8 bits a channel, and the model learned from images of more, seen through a window"
    if channels == 1 and not grey:
        with open_image() as image:  # its colours may all be greys
            if _in_colour(image):
                yield "is in colour, and the model learned from grey images"
    if width < size[1] or height < size[0]:
        yield f"has {height} x {width} pixels, fewer than the {size[0]} x {size[1]} that the model takes"


def _in_colour(image) -> bool:
    small = image.convert("RGB")
    small.thumbnail((_LOOKED_AT, _LOOKED_AT))
    return int(np.ptp(np.asarray(small).astype(np.int16), axis=2).max()) > _COLOUR
