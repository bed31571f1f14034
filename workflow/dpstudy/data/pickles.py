"""Safe unpickling of CIFAR's python batches, the only pickles that are read."""

import io
import pickle
import pickletools
from pathlib import Path

import numpy as np
from numpy._core.multiarray import _reconstruct

from dpstudy.core.errors import StudyError
from dpstudy.data.source import read_bytes

_PUTS = ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE")
_GETS = ("GET", "BINGET", "LONG_BINGET")
_TUPLES = ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3")
_POPS = ("POP", "POP_MARK")
_TAKES = ("REDUCE", "BUILD")
_MOST_TUPLES, _MOST_AGAIN = 200, 8  # an array has about three; several arrays may share some


class _RefusedError(Exception):
    """A pickle asks for more than a batch needs."""


class _Latin1:
    """`_codecs.encode` for the one codec by which Python 3 writes bytes in protocol 2; the real one runs any codec."""

    __slots__ = ()  # a pickle may set attributes of what it names: here there are none

    def __call__(self, text: str, encoding: str) -> bytes:
        if encoding != "latin1":
            raise _RefusedError(f"_codecs.encode with {str(encoding)[:60]!r}")
        return text.encode("latin1")


class _ArrayType:
    """`numpy.ndarray` as an argument; the real one, called, makes arrays of any size out of any memory."""

    __slots__ = ()


class _Reconstruct:
    """numpy's `_reconstruct` of an array that is still empty, which is how numpy writes every array."""

    __slots__ = ()

    def __call__(self, kind: object, shape: tuple, code: bytes) -> object:
        if not isinstance(kind, _ArrayType) or shape != (0,):
            raise _RefusedError("an array that numpy does not write so")
        return _reconstruct(np.ndarray, (0,), b"b")


_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _Reconstruct(),
    ("numpy._core.multiarray", "_reconstruct"): _Reconstruct(),
    ("numpy", "ndarray"): _ArrayType(),
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _Latin1(),
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str):
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise _RefusedError(f"{module[:60]}.{name[:60]}") from None


def read_batch(path: Path) -> dict[str, object]:
    """The dictionary in a CIFAR python batch: numpy arrays, lists, numbers and strings, with str keys.

    Nothing of the file is run: it may name numpy's array constructors and nothing else.

    Raises:
        StudyError: the file is missing, damaged, not a dictionary, or names any other global.
    """
    try:
        content = read_bytes(path)
        _check_steps(content)
        content = _ArrayUnpickler(io.BytesIO(content), encoding="bytes").load()
    except _RefusedError as refused:
        raise StudyError(
            f"{path}: refused: this pickle asks for {refused}, which no CIFAR batch holds; it may be malicious"
        ) from None
    except StudyError:
        raise
    except Exception as error:  # damaged pickles raise almost anything
        reason = str(error)[:200] or type(error).__name__
        raise StudyError(f"{path}: damaged or truncated CIFAR python batch ({reason})") from None
    if not isinstance(content, dict):
        raise StudyError(f"{path}: not a CIFAR python batch: it holds a {type(content).__name__}, not a dictionary")
    return {_text(key): value for key, value in content.items()}


def _check_steps(content: bytes) -> None:
    """Refuse a pickle that would take memory or time out of proportion to its size; nothing is unpickled for this.

    The unpickler's memory is as large as the largest place that a file names in it. And to find the key of a dictionary
    it goes through the whole of a tuple, within tuples, as often as each stands there: it could go on for ever, or
    deeper than the stack reaches.
    """
    tuples, again, memory, tuple_places, on_tuple = 0, 0, 0, set(), False
    for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        step = opcode.name
        if step in _PUTS:
            place = memory if step == "MEMOIZE" else argument or 0  # the others always have one
            if place > number:
                raise _RefusedError(f"place {place} of its memory after {number} steps")
            memory += 1
            if on_tuple:
                tuple_places.add(place)
        elif step in _POPS:  # what is below would come up unseen
            raise _RefusedError(f"the step {step}")
        else:
            once_more = step == "DUP" or (step in _GETS and argument in tuple_places)
            tuples += on_tuple and step not in _TAKES  # the arguments of a call go no deeper
            again += once_more
            on_tuple = once_more or step in _TUPLES
        if tuples > _MOST_TUPLES or again > _MOST_AGAIN:
            raise _RefusedError("more tuples than arrays need")


def _text(key: object) -> str:
    return key.decode("latin1") if isinstance(key, bytes) else str(key)
