"""Reducing images of more than 8 bits per channel to 8 bits through a viewing window."""

from typing import TYPE_CHECKING

import numpy as np

from dpstudy.core.errors import StudyError

if TYPE_CHECKING:
    from PIL import Image

FILE = "file"  # the window that a file itself has; of a PNG or TIFF file, all that its bits can hold

Window = str | tuple[float, float]  # FILE, or (centre, width) in the numbers that pixels stand for

LINEAR, EXACT, SIGMOID = "LINEAR", "LINEAR_EXACT", "SIGMOID"
REMEDY = (
    "name the window in which such images are looked at, `window: [centre, width]`, or `window: file` for the one that "
    "stands in a DICOM file, or all that the bits of another file can hold"
)


class OptionError(StudyError):
    """A file that needs an option of the config, `window` or `frame`.

    Attributes:
        fact: what is wrong, without that advice, for whoever has no config.
    """

    def __init__(self, fact: str, advice: str, mark: str = "; "):
        super().__init__(f"{fact}{mark}{advice}")
        self.fact = fact


def window_of(options: dict) -> Window | None:
    """The option `window`; None where absent.

    Raises:
        StudyError: it is neither `file` nor two numbers, of which the second is 1 or more.
    """
    value = options.get("window")
    if value is None or value == FILE:
        return value
    numbers = isinstance(value, list | tuple) and len(value) == 2 and all(type(v) in (int, float) for v in value)
    if not numbers or not np.isfinite(value).all() or value[1] < 1:
        raise StudyError(f"window: {value!r} is neither `file` nor [centre, width], two numbers, the width 1 or more")
    return float(value[0]), float(value[1])


def seen_through(values: np.ndarray, centre: float, width: float, function: str = LINEAR) -> np.ndarray:
    """Grey values as uint8 through a window, black below and white above it (DICOM PS3.3, C.11.2.1.2 and 3).

    >>> seen_through(np.array([0, 1024, 2048, 4095]), 2048, 4096)
    array([  0,  64, 128, 255], dtype=uint8)

    Args:
        width: at least 1, or above 0 for the functions other than LINEAR.
        function: LINEAR, LINEAR_EXACT or SIGMOID; what DICOM calls so.
    """
    values = values.astype(np.float64)
    if function == LINEAR:
        below = centre - 0.5 - (width - 1) / 2
        share = (values - below) / (width - 1) if width > 1 else values > below
    else:
        share = (values - centre) / width
        share = share + 0.5 if function == EXACT else 1 / (1 + np.exp(-4 * np.clip(share, -100, 100)))
    return np.rint(255 * np.clip(share, 0, 1)).astype(np.uint8)


def eight_bits(image: "Image.Image", bits: int, odd: str, window: Window, where: str) -> "Image.Image":
    """A PNG, TIFF or JPEG 2000 image of more than 8 bits per channel reduced to 8, upright.

    Args:
        image: loaded, and turned as it is seen.
        bits: a channel, in the file.
        odd: what is odd about its numbers, "" where they have neither sign nor point.

    Raises:
        StudyError: the window does not go with such a file.
    """
    from PIL import Image

    if image.mode in ("RGB", "RGBA", "LA"):  # Pillow has kept the upper 8 bits of each channel
        if window != FILE:
            raise OptionError(
                f"{where} is in colour, or has transparency, of {bits} bits", "give `window: file` for such"
            )
        return image
    if odd and window == FILE:
        raise OptionError(f"{where} has {odd}, and no window of its own", "give `window: [centre, width]`")
    centre, width = (2.0 ** (bits - 1), 2.0**bits) if isinstance(window, str) else window
    values = np.asarray(image)
    grey = seen_through(values, centre, width)
    if (hidden := image.info.get("transparency")) is not None:
        grey[values == hidden] = 255
    return Image.fromarray(grey)
