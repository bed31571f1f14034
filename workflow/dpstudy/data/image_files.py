"""Opening image files as viewers show them: upright, one image per file, on white where transparent.

What a file holds decides, not what Pillow makes of it: of 16 bits a channel Pillow keeps the upper 8 without a word.
More than 8 bits become 8 through a window (data/windows.py), in DICOM files (data/dicom.py) too.
"""

import contextlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dpstudy.core.errors import StudyError
from dpstudy.data import dicom
from dpstudy.data.held import Source, raw
from dpstudy.data.windows import REMEDY, OptionError, Window, eight_bits

if TYPE_CHECKING:
    from PIL import Image

GREY_MODES = ("1", "L", "LA")
_MODES = (*GREY_MODES, "RGB", "RGBA", "RGBX", "P", "PA", "CMYK", "YCbCr")
_DEEP_FORMATS = ("PNG", "TIFF", "JPEG2000")  # whose numbers Pillow leaves as they are
_ODD = (("TIFF", "I"), ("TIFF", "F"))  # and those with a sign or a point
_FIRST = "save it as PNG or TIFF, or bring it to these first, with the window in which it is looked at"
# Whatever a file is called: Pillow would open others too, and hand PostScript to the program that runs it.
FORMATS = ("PNG", "JPEG", "JPEG2000", "TIFF", "WEBP", "BMP", "GIF", "PPM")
SUFFIXES = tuple(
    f".{name}"
    for name in "png jpg jpeg jpe jfif webp bmp gif ppm pgm pbm pnm tif tiff jp2 j2k jpx jpf dcm dicom".split()
)
_ORIENTATION, _BITS_PER_SAMPLE, _SAMPLE_FORMAT = 0x0112, 258, 339  # tags of EXIF and TIFF
_HEADER = 1 << 16  # bytes in which a file says how deep it is


class UnreadableImageError(StudyError):
    """An image file is missing or damaged: the only mistake that the option `unreadable` tolerates."""


def is_image_file(path: Path) -> bool:
    """Whether a file is to be read as an image: by its suffix, or as DICOM by how it begins, whatever it is called."""
    return path.name.lower().endswith(SUFFIXES) or dicom.is_dicom(path)


@contextlib.contextmanager
def opened(
    path: Source, where: str, frame: int | None = None, max_pixels: int | None = None, window: Window | None = None
) -> Iterator["Image.Image"]:
    """An image file opened with Pillow (header only until pixels are used; DICOM files are decoded at once).

    Args:
        frame: which picture of a file with several is meant, from 0; None where a file must have one.
        max_pixels: of the largest image that is opened; Pillow's limit (89 million) where None.
        window: how more than 8 bits a channel become 8; None where no file may have more.

    Raises:
        UnreadableImageError: opening or decoding fails: no such file, no image, damaged, or of a size meant to exhaust
        memory.
        StudyError: it has more than 8 bits a channel and no window, or several pictures and none is chosen.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings(), _limit(max_pixels):
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            if dicom.is_dicom(path):
                yield dicom.picture(path, f"{where}: {path}", frame, max_pixels, window)
                return
            with raw(path) as file, Image.open(file, formats=FORMATS) as image:
                _choose_frame(image, frame, f"{where}: {path}")
                yield _of_eight_bits(image, path, window, f"{where}: {path}")
    except StudyError:
        raise
    except FileNotFoundError:
        raise UnreadableImageError(f"{where}: no such file: {path}") from None
    except IsADirectoryError:
        raise UnreadableImageError(f"{where}: {path} is a folder, and no image file") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UnreadableImageError(
            f"{where}: {path} is refused as a decompression bomb ({error}); make it smaller, or raise `max_pixels` "
            "(predict.py: --max-pixels) if you know where it comes from"
        ) from None
    except UnidentifiedImageError:
        if bits := _bits_of_jpeg(path):
            raise _too_deep(f"{where}: {path}", bits, _FIRST) from None
        raise UnreadableImageError(
            f"{where}: {path} is not an image, or is damaged; {', '.join(FORMATS)} and DICOM are read"
        ) from None
    except Exception as error:  # decoders raise almost anything on damaged bytes
        raise UnreadableImageError(
            f"{where}: {path} cannot be decoded ({str(error).partition(chr(10))[0] or type(error).__name__})"
        ) from None


def shown(image: "Image.Image") -> "Image.Image":
    """The image as viewers show it: rotated by its EXIF tag, and on white where transparent.

    What stands under transparent pixels, which nobody sees, counts for nothing; opaque pixels stay as they are.
    """
    from PIL import Image

    image = _upright(image)
    if not image.has_transparency_data:
        return image
    opaque = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    return opaque.convert("L" if image.mode in GREY_MODES else "RGB")


def _upright(image: "Image.Image") -> "Image.Image":
    from PIL import Image

    image.load()  # a TIFF is turned by Pillow then
    turn = Image.Transpose
    turns = {2: turn.FLIP_LEFT_RIGHT, 3: turn.ROTATE_180, 4: turn.FLIP_TOP_BOTTOM, 5: turn.TRANSPOSE}
    turns |= {6: turn.ROTATE_270, 7: turn.TRANSVERSE, 8: turn.ROTATE_90}
    orientation = _orientation(image)
    return image.transpose(turns[orientation]) if orientation in turns else image


def _orientation(image: "Image.Image") -> object:
    """1 to 8, or what stands in its place; None where the tag is missing, or its block damaged."""
    try:
        return image.getexif().get(_ORIENTATION)
    except Exception:  # parsers of EXIF raise almost anything; the pixels are whole all the same
        return None


@contextlib.contextmanager
def _limit(max_pixels: int | None) -> Iterator[None]:
    from PIL import Image

    before = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = before if max_pixels is None else max_pixels
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = before


def _choose_frame(image: "Image.Image", frame: int | None, where: str) -> None:
    # of a JPEG the first is the photograph: others are previews, or maps of its brightness, and no viewer shows them
    frames = 1 if image.format in ("JPEG", "MPO") else getattr(image, "n_frames", 1)
    if frames > 1 and frame is None:
        raise OptionError(
            f"{where} holds {frames} pictures (an animation, or pages)",
            "save the one that is meant as a file of its own, or choose one of each file by `frame`, counted from 0",
        )
    if frame is not None and frame >= frames:
        raise StudyError(f"{where} has no picture {frame}: it holds {frames}, and `frame` counts from 0")
    if frames > 1:
        image.seek(frame or 0)


def _of_eight_bits(image: "Image.Image", path: Source, window: Window | None, where: str) -> "Image.Image":
    """An opened image, or what is seen of it through a window.

    Raises:
        StudyError: it has more than 8 bits, a sign or a point, and no window is given, or none helps.
    """
    bits, odd = depth(image, path)
    if bits > 8 and (image.format not in _DEEP_FORMATS or (odd and (image.format, image.mode) not in _ODD)):
        raise _too_deep(where, bits, _FIRST)
    if bits > 8:
        if window is None:
            raise _too_deep(where, bits, REMEDY)
        return eight_bits(_upright(image), bits, odd, window, where)
    if odd or image.mode not in _MODES:
        raise StudyError(f"{where} has {odd or f'pixels of mode {image.mode}'}; save it as grey or RGB of 8 bits")
    if image.mode == "L" and bits < 8 and "transparency" in image.info:  # Pillow scales grey levels, and not this one
        image.info["transparency"] = image.info["transparency"] * 255 // (2**bits - 1)
    return image


def _too_deep(where: str, bits: int, remedy: str) -> OptionError:
    return OptionError(f"{where} has {bits} bits a channel, and images are read at 8 bits", remedy, ": ")


def _bits_of_jpeg(path: Source) -> int:
    """The bits a channel of a JPEG that Pillow does not know, as some in DICOM files; 0 of another file."""
    with raw(path) as file:
        head = file.read(_HEADER)
    frame = re.search(rb"\xff[\xc0-\xc3\xc9].{2}([\x09-\x10])", head, re.DOTALL)  # start of frame, length, precision
    return frame[1][0] if frame and head.startswith(b"\xff\xd8\xff") else 0


def depth(image: "Image.Image", path: Source) -> tuple[int, str]:
    """The bits per channel that the file itself states (8 by default), and any peculiarity of its numbers."""
    if image.format == "TIFF":
        tags = image.tag_v2  # type: ignore[attr-defined]
        signs = tags.get(_SAMPLE_FORMAT, (1,))
        return max(tags.get(_BITS_PER_SAMPLE, (1,))), "" if set(signs) <= {1, 4} else "signed or broken numbers"
    if image.format not in ("PNG", "JPEG2000", "PPM"):
        return 8, ""
    with raw(path) as file:
        head = file.read(-1 if image.format == "JPEG2000" else _HEADER)  # there metadata may stand before it
    if image.format == "PNG":
        return head[head.index(b"IHDR") + 12], ""
    if image.format == "PPM":
        words = re.sub(rb"#[^\r\n]*", b"", head).split(maxsplit=4)
        return (int(words[3]).bit_length() if words[0] in (b"P2", b"P3", b"P5", b"P6") else 8), ""
    at = head.index(b"\xff\x4f\xff\x51") + 4  # the codestream's marker SIZ: 36 bytes of sizes, then its components
    count = int.from_bytes(head[at + 36 : at + 38])
    components = head[at + 38 : at + 38 + 3 * count : 3]
    return max(each & 0x7F for each in components) + 1, "signed numbers" if max(components) > 0x7F else ""
