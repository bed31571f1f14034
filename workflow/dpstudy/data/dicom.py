"""DICOM files: the picture of each, as viewers show it, and the tags that a config names; no other tag is kept.

Files with a preamble are known by it, whatever they are called.
"""

import contextlib
import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.dicom_levels import PALETTE, bring_up, colour, grey
from dpstudy.data.held import Source, raw
from dpstudy.data.windows import OptionError, Window

if TYPE_CHECKING:
    from PIL import Image
    from pydicom import Dataset

_PREAMBLE, _MAGIC = 128, b"DICM"
_GREY = ("MONOCHROME1", "MONOCHROME2")
_COLOURS = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")  # pydicom makes RGB of them
_DEFLATED, _HEAD = b"1.2.840.10008.1.2.1.99", 1 << 16  # the transfer syntax stands in the first bytes
_JPEG_EXTENDED = ("1.2.840.10008.1.2.4.51",)
_FRAMES = {*range(0xC0, 0xD0), 0xF7} - {0xC4, 0xC8, 0xCC}  # markers behind which a JPEG's size stands
_MOST_PIXELS = 89_478_485  # Pillow's limit
_INSTALL = "pip install pydicom python-gdcm"  # the extra `dicom`
_PIXELS = 0x7FE0  # the group of a picture's elements
_NUMBERS = ("AS", "DS", "FD", "FL", "IS", "SL", "SS", "UL", "US")  # value representations
_NO_WORDS = ("OB", "OD", "OF", "OL", "OV", "OW", "SQ", "UN", "AT")  # bytes, sequences, and names of tags
_FIRST_GROUP = 0x0008  # before it stands what says how a file is written
_YEARS = {"Y": 1, "M": 12, "W": 52.18, "D": 365.25}  # units in a year (PS3.5, AS)


class _DamagedError(ValueError):
    """What is wrong with a file, in words that repeat no text of its tags."""


def is_dicom(path: Source) -> bool:
    """Whether a file begins as DICOM files do; False where it cannot be read."""
    try:
        with raw(path) as file:
            file.seek(_PREAMBLE)
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def picture(
    path: Source, where: str, frame: int | None = None, max_pixels: int | None = None, window: Window | None = None
) -> "Image.Image":
    """The picture of a DICOM file as grey or RGB, 8 bits per channel.

    Args:
        where: what an error message calls the file.
        frame: which picture of a file with several, from 0.
        max_pixels: of the largest that is decoded.
        window: how more than 8 bits become 8; None where a file has no more.

    Raises:
        StudyError: pydicom is missing, or the file holds no picture, several and none is chosen, more bits and no
            window is given, or what no decoder of the extra `dicom` reads.
        ValueError: it is damaged; without pydicom's own words, which repeat what stands in tags.
    """
    try:
        return _picture(path, where, frame, max_pixels, window)
    except (StudyError, _DamagedError):
        raise
    except Exception as error:  # of damaged bytes pydicom raises almost anything
        raise ValueError(type(error).__name__) from None


def _picture(
    path: Source, where: str, frame: int | None, max_pixels: int | None, window: Window | None
) -> "Image.Image":
    from PIL import Image

    with _pydicom(where) as pydicom:
        with raw(path) as file:
            _refuse_deflated(file.read(_HEAD), where)
            file.seek(0)
            dataset = pydicom.dcmread(file)
        if "PixelData" not in dataset:
            if _is_of_pictures(dataset):
                raise ValueError("it ends before its picture")
            raise StudyError(f"{where} is a DICOM file without a picture; leave it out")
        kind, frames = str(dataset.PhotometricInterpretation), int(dataset.get("NumberOfFrames") or 1)
        if frames > 1 and frame is None:
            raise OptionError(
                f"{where} holds {frames} frames",
                "save the one that is meant as a file of its own, or choose one of each file by `frame`, counted from "
                "0",
            )
        if (frame or 0) >= frames:
            raise StudyError(f"{where} has no frame {frame}: it holds {frames}, and `frame` counts from 0")
        if dataset.Rows * dataset.Columns > (max_pixels or _MOST_PIXELS):
            raise _DamagedError(
                f"{dataset.Rows} x {dataset.Columns} pixels, more than `max_pixels`, of predict.py --max-pixels"
            )
        if kind not in (*_GREY, *_COLOURS, PALETTE):
            raise StudyError(f"{where} has pixels of a kind that is not read; save it as grey or RGB")
        pixels = _decoded(dataset, frame, where)
        bring_up(dataset, frame or 0)
        return Image.fromarray(
            grey(dataset, pixels, window, where) if kind in _GREY else colour(dataset, pixels, where)
        )


def header(path: Source, where: str) -> tuple[tuple[int, int], int, bool]:
    """(height, width), bits a channel, and whether it is grey, as a DICOM file says without its pixels.

    Raises:
        StudyError: pydicom is missing.
        Exception: as of `picture`.
    """
    asked = ["Rows", "Columns", "BitsStored", "PhotometricInterpretation"]
    with _pydicom(where) as pydicom, raw(path) as file:
        found = pydicom.dcmread(file, stop_before_pixels=True, specific_tags=asked)
        return (int(found.Rows), int(found.Columns)), int(found.BitsStored), found.PhotometricInterpretation in _GREY


def _is_of_pictures(dataset: "Dataset") -> bool:
    """Whether a file without a picture is of a kind that has one, or was cut off before it says its kind."""
    kind = dataset.file_meta.get("MediaStorageSOPClassUID")
    return not any(tag.group == _PIXELS for tag in dataset.keys()) and (
        kind is None or kind.name == kind or "Image" in kind.name or "Rows" in dataset  # a half UID has no name
    )


def _decoded(dataset: "Dataset", frame: int | None, where: str) -> np.ndarray:
    """The numbers that a file stores.

    Raises:
        StudyError: no decoder for its compression is here.
    """
    from pydicom.encaps import get_frame
    from pydicom.pixels import get_decoder, pixel_array
    from pydicom.uid import RLELossless

    syntax, advice = dataset.file_meta.TransferSyntaxUID, ""
    try:
        if not get_decoder(syntax).is_available:
            advice = f"run {_INSTALL}, or "
    except NotImplementedError:  # a video, say
        advice = "no decoder is known for it; "
    if syntax in _JPEG_EXTENDED and dataset.BitsStored > 8:
        advice = "decoders of 12-bit JPEG have licences that bind their users; "
    if advice:
        known = f" ({syntax.name})" if syntax.name != syntax else ""  # else it is any text
        raise StudyError(f"{where} is compressed{known} and cannot be read here: {advice}save it uncompressed")
    frames = int(dataset.get("NumberOfFrames") or 1)
    if syntax.is_encapsulated and syntax != RLELossless:  # whose decoders ask for what the picture says it is
        coded = _coded_size(get_frame(dataset.PixelData, frame or 0, number_of_frames=frames))
        if coded != (dataset.Rows, dataset.Columns):
            raise _DamagedError(f"its picture is of {coded[0]} x {coded[1]} pixels, and its tags say otherwise")
    return pixel_array(dataset, index=frame if frames > 1 else None)


def _coded_size(content: bytes) -> tuple[int, int]:
    """(height, width) as a JPEG, JPEG-LS or JPEG 2000 stream says it.

    Raises:
        ValueError, IndexError: it is none of these, or is cut off.
    """
    if content.startswith(b"\xff\xd8"):
        place = 2
        while content[place] == 0xFF:
            kind, length = content[place + 1], int.from_bytes(content[place + 2 : place + 4])
            if kind in _FRAMES:
                return int.from_bytes(content[place + 5 : place + 7]), int.from_bytes(content[place + 7 : place + 9])
            place += 2 + length if kind != 0xFF else 1  # bytes of 255 may be padding
        raise ValueError("no frame in its JPEG stream")
    place = content.index(b"\xff\x4f\xff\x51") + 8
    right, below, left, above = (int.from_bytes(content[place + at : place + at + 4]) for at in (0, 4, 8, 12))
    return below - above, right - left


def tags(path: Source, keywords: Sequence[str], where: str) -> list[str]:
    """The values of some tags of a DICOM file, "" where one is missing or empty; ages in years.

    Args:
        keywords: such as PatientID; see `check_keywords`.
        where: what an error message calls the file.

    Raises:
        StudyError: the file cannot be read, is no DICOM file, or damaged, or a tag has several values.
    """
    with _pydicom(where) as pydicom:
        try:
            with raw(path) as file:
                head = file.read(_HEAD)
                if head[_PREAMBLE:][: len(_MAGIC)] != _MAGIC:
                    what = "not a DICOM file" if head else "empty, and no DICOM file"
                    raise StudyError(f"{where}: {path} is {what}, and `tags` are read from such")
                _refuse_deflated(head, f"{where}: {path}")
                file.seek(0)
                dataset = pydicom.dcmread(file, stop_before_pixels=True, specific_tags=list(keywords))
                # it reads what is left of a value, and takes a tag behind the end for one that is not there
                if _PIXELS not in (int.from_bytes(group := file.read(2), "little"), int.from_bytes(group, "big")):
                    raise StudyError(
                        f"{where}: {path} has no picture, or ends before it, so that {', '.join(keywords)} may be cut "
                        "off; save it anew"
                    )
            values = [dataset.get(keyword) for keyword in keywords]
        except StudyError:
            raise
        except OSError as error:
            raise StudyError(f"{where}: {path} cannot be read ({error.strerror or error})") from None
        except Exception as error:  # of damaged bytes pydicom raises almost anything
            raise StudyError(f"{where}: the tags of {path} cannot be read ({type(error).__name__})") from None
    for keyword, value in zip(keywords, values, strict=True):
        if isinstance(value, list | tuple) or type(value).__name__ in ("MultiValue", "Sequence"):
            raise StudyError(f"{where}: the tag {keyword} of {path} has several values; `tags` need one")
    return [_text(keyword, value) for keyword, value in zip(keywords, values, strict=True)]


def _refuse_deflated(head: bytes, where: str) -> None:
    if _DEFLATED in head:  # a few compressed bytes may expand to any size
        raise StudyError(f"{where} is a deflated DICOM file; save it otherwise, uncompressed for instance")


def _text(keyword: str, value: object) -> str:
    text = "" if value is None else str(value).strip()
    if keyword == "PatientAge" and text[-1:].upper() in _YEARS and text[:-1].isdigit():
        return f"{int(text[:-1]) / _YEARS[text[-1].upper()]:.12g}"
    return text


def check_keywords(keywords: Sequence[str]) -> list[bool]:
    """Whether each of these DICOM tags holds a number (ages do).

    Raises:
        StudyError: DICOM has no tag of such a name, or none of a word or number, or pydicom is missing.
    """
    with _pydicom("tags") as pydicom:
        known = pydicom.datadict
        for keyword in keywords:
            tag = known.tag_for_keyword(keyword)
            if tag is None:
                raise StudyError(f"tags: DICOM has no tag {keyword!r}; it has PatientID, PatientSex and PatientAge")
            if known.dictionary_VR(tag)[:2] in _NO_WORDS or not _FIRST_GROUP <= tag >> 16 < _PIXELS:
                raise StudyError(
                    f"tags: {keyword!r} is no tag of a word or number that is read here, as PatientID, PatientSex and "
                    "PatientAge are"
                )
        return [known.dictionary_VR(keyword) in _NUMBERS for keyword in keywords]


@contextlib.contextmanager
def _pydicom(where: str) -> Iterator[Any]:
    """The package, without its warnings, which repeat what stands in tags.

    Raises:
        StudyError: it is not installed.
    """
    try:
        import pydicom
    except ModuleNotFoundError:
        raise StudyError(f"{where}: a DICOM file needs pydicom; run {_INSTALL}") from None
    log = logging.getLogger("pydicom")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield pydicom
    finally:
        log.setLevel(before)
