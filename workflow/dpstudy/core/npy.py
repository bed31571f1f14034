"""Safe reading of .npy and .npz files: nothing is unpickled, and no header can claim more memory than the file has."""

import math
import os
import zipfile

import numpy as np

from dpstudy.core.errors import StudyError

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_MOST_DEFLATED = 1032  # bytes that one byte of a zip member can stand for


def map_npy(path: str | os.PathLike) -> np.ndarray:
    """The array of a .npy file, memory-mapped.

    Raises:
        StudyError: the file is missing, damaged, shorter than its header says, or holds Python objects.
    """
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file; save images and labels with numpy.save") from None
    except Exception as error:  # the header is Python text: damaged, its parser raises almost anything
        raise StudyError(f"{path}: damaged or truncated, or a pickled .npy file ({_reason(error)})") from None


def read_npy(path: str | os.PathLike) -> np.ndarray:
    """The array of a .npy file, in memory.

    Raises:
        StudyError: as for `map_npy`.
    """
    return np.array(map_npy(path))


def read_npz(path: str | os.PathLike, name: str) -> np.ndarray:
    """The array `name` of a .npz file.

    Raises:
        StudyError: there is no such file or array, it is damaged, or it holds Python objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.getinfo(f"{name}.npy")
            with archive.open(member) as file:
                _check_promise(file, min(member.file_size, _MOST_DEFLATED * os.path.getsize(path)))
            with archive.open(member) as file:
                return np.lib.format.read_array(file, allow_pickle=False)
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file") from None
    except KeyError:
        raise StudyError(f"{path}: it holds no array {name!r}") from None
    except Exception as error:  # zip's directory and numpy's header, damaged, raise almost anything
        raise StudyError(f"{path}: damaged or truncated .npz file ({_reason(error)}); fetch it again") from None


def _check_promise(file, available: int) -> None:
    """Refuse a header that says more than `available` bytes: numpy would ask for the memory before it reads."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"version {version} of the format, where 1.0 and 2.0 are read")
    shape, _, dtype = _HEADERS[version](file)
    if math.prod(shape) * dtype.itemsize > available:
        raise ValueError(f"its header says {shape} of {dtype}, more than the file can hold")


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
