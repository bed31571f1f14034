"""The one place where something is unpickled: CIFAR's python batches, and only what those files hold."""

import io
import pickle
from pathlib import Path

import numpy as np
from numpy._core.multiarray import _reconstruct

from dpstudy.data.source import read_bytes
from dpstudy.errors import StudyError


class _RefusedError(Exception):
    pass


class _Latin1:
    """`_codecs.encode` for the one codec by which Python 3 writes bytes in protocol 2; the real one runs any codec."""

    __slots__ = ()  # a pickle may set attributes of what it names: here there are none

    def __call__(self, text: str, encoding: str) -> bytes:
        if encoding != "latin1":
            raise _RefusedError(f"_codecs.encode with {encoding!r}")
        return text.encode("latin1")


_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _Latin1(),
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str):
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise _RefusedError(f"{module}.{name}") from None


def read_batch(path: Path) -> dict[str, object]:
    """The dictionary that a CIFAR python batch holds: numpy arrays, lists, numbers and strings, keys as str.

    Nothing of the file is run: it may name numpy's array constructors and nothing else.

    Raises:
        StudyError: the file is missing, damaged, not a dictionary, or names any other global.
    """
    try:
        content = _ArrayUnpickler(io.BytesIO(read_bytes(path)), encoding="bytes").load()
    except _RefusedError as refused:
        raise StudyError(
            f"{path}: refused: this pickle asks for {refused}, which no CIFAR batch holds; it may be malicious"
        ) from None
    except StudyError:
        raise
    except Exception as error:  # damaged pickles raise almost anything
        raise StudyError(f"{path}: damaged or truncated CIFAR python batch ({error or type(error).__name__})") from None
    if not isinstance(content, dict):
        raise StudyError(f"{path}: not a CIFAR python batch: it holds a {type(content).__name__}, not a dictionary")
    return {_text(key): value for key, value in content.items()}


def _text(key: object) -> str:
    return key.decode("latin1") if isinstance(key, bytes) else str(key)
