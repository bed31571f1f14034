"""Grey levels and colours of DICOM files, as viewers show them.

What pixels stand for is theirs after the modality's table or rescaling (PS3.3, C.11.1); of these a window makes grey
levels (C.11.2). Enhanced files have both in groups of their frames (C.7.6.16).
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.windows import EXACT, FILE, LINEAR, REMEDY, SIGMOID, OptionError, Window, seen_through

if TYPE_CHECKING:
    from pydicom import Dataset

PALETTE = "PALETTE COLOR"
_OF_FRAMES = {  # what is read of the groups of an enhanced file: of all its frames, or of each
    "PixelValueTransformationSequence": ("RescaleSlope", "RescaleIntercept"),
    "FrameVOILUTSequence": ("WindowCenter", "WindowWidth", "VOILUTFunction"),
}


def bring_up(dataset: "Dataset", frame: int) -> None:
    """Write what an enhanced file says of a frame where other files have it: first of all frames, then of this one."""
    for name, place in (("SharedFunctionalGroupsSequence", 0), ("PerFrameFunctionalGroupsSequence", frame)):
        group: Any = dataset.get(name)[place] if dataset.get(name) else {}
        for sequence, keywords in _OF_FRAMES.items():
            for keyword in keywords if group.get(sequence) else ():
                setattr(dataset, keyword, group.get(sequence)[0].get(keyword))


def _is_rescaled(dataset: "Dataset", where: str) -> bool:
    """Whether stored numbers stand for others by slope and intercept.

    Raises:
        StudyError: one of both is missing, so that nobody can tell, or they are no such numbers.
    """
    given = [dataset.get(name) for name in ("RescaleSlope", "RescaleIntercept")]
    slope, intercept = (default if one is None else float(one) for one, default in zip(given, (1.0, 0.0), strict=True))
    if (slope, intercept) == (1, 0):
        return False
    if None in given or slope == 0 or not np.isfinite([slope, intercept]).all():
        raise StudyError(
            f"{where} has a rescaling that is none: RescaleSlope and RescaleIntercept must both be there and finite, "
            "and the slope not 0; mend the file, or leave it out"
        )
    return True


def grey(dataset: "Dataset", pixels: np.ndarray, window: Window | None, where: str) -> np.ndarray:
    """(H, W) uint8 from the numbers that a file stores; the arguments are those of `dicom.picture`.

    Raises:
        StudyError: nothing says how they become 8 bits, or what says it cannot be.
    """
    from pydicom.pixels import apply_modality_lut, apply_voi

    plain = not dataset.get("ModalityLUTSequence") and not _is_rescaled(dataset, where)
    values = pixels if plain else np.asarray(apply_modality_lut(pixels, dataset))  # which makes fractions of them
    bits, has_window = dataset.BitsStored, bool(dataset.get("VOILUTSequence") or dataset.get("WindowWidth") is not None)
    if bits <= 8 and values.dtype.kind == "u" and not (has_window and window == FILE):
        levels = seen_through(values, 2.0 ** (bits - 1), 2.0**bits)
    elif window is None:
        raise OptionError(
            f"{where} has {bits} bits a channel, or numbers with a sign or a point, and images are read at 8",
            REMEDY,
            ": ",
        )
    elif not isinstance(window, str):
        levels = seen_through(values, *window)
    elif dataset.get("VOILUTSequence"):
        bits = dataset.VOILUTSequence[0].LUTDescriptor[2]
        levels = seen_through(apply_voi(np.rint(values).astype(np.int64), dataset), 2.0 ** (bits - 1), 2.0**bits)
    else:
        levels = _own_window(dataset, values, where)
    return 255 - levels if dataset.PhotometricInterpretation == "MONOCHROME1" else levels


def _own_window(dataset: "Dataset", values: np.ndarray, where: str) -> np.ndarray:
    centre, width = (_first(dataset.get(name)) for name in ("WindowCenter", "WindowWidth"))
    function = str(dataset.get("VOILUTFunction") or LINEAR).upper()
    if centre is None or width is None:
        raise OptionError(
            f"{where} has no window of its own",
            "give `window: [centre, width]`, such as [2048, 4096] where grey levels go from 0 to 4095",
        )
    none = function not in (LINEAR, EXACT, SIGMOID) or width <= 0 or (function == LINEAR and width < 1)
    if none or not np.isfinite([centre, width]).all():
        raise OptionError(
            f"{where} has a window that is none: DICOM knows {LINEAR}, {EXACT} and {SIGMOID} with finite numbers, and "
            "a width above 0 (for the first, of 1 or more)",
            "give `window: [centre, width]`",
        )
    return seen_through(values, centre, width, function)


def _first(value: Any) -> float | None:
    """The first of a file's windows: others are other views of it."""
    if value is None or value == "":
        return None
    return float(value) if isinstance(value, int | float | str) else float(value[0])


def colour(dataset: "Dataset", pixels: np.ndarray, where: str) -> np.ndarray:
    """(H, W, 3) uint8 from the numbers that a file stores.

    Raises:
        StudyError: it has more bits.
    """
    from pydicom.pixels import apply_color_lut

    if dataset.PhotometricInterpretation == PALETTE:
        pixels = np.asarray(apply_color_lut(pixels, dataset))
        if pixels.dtype == np.uint16:
            pixels = (pixels >> 8).astype(np.uint8)
    if pixels.dtype != np.uint8:
        raise StudyError(f"{where} is in colour of {dataset.BitsStored} bits a channel; save it with 8")
    return pixels[..., :3]
