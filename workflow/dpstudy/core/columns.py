"""Conversion between Arrow arrays and Python or NumPy values without importing pandas.

`pa.array` and `to_numpy` import it, which takes a third of a second, to see whether they are given one of its objects.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa


def numbers(values: np.ndarray | Sequence, dtype: type) -> pa.Array:
    """An Arrow array of (n,) numbers of the NumPy type `dtype`; None becomes null.

    >>> numbers([0.5, None], np.float64).to_pylist()
    [0.5, None]

    Raises:
        OverflowError: a whole number that the type does not hold.
    """
    validity = None
    if not isinstance(values, np.ndarray):
        validity = _validity(values)
        values = np.array([0 if value is None else value for value in values], dtype)
    flat: np.ndarray = np.ascontiguousarray(values, dtype)
    if flat.dtype.kind in "iu" and (flat != values).any():
        raise OverflowError(f"{values[np.argmax(flat != values)]} does not fit into {flat.dtype}")
    return pa.Array.from_buffers(pa.from_numpy_dtype(flat.dtype), len(flat), [validity, pa.py_buffer(flat)])


def strings(values: np.ndarray | Sequence[str]) -> pa.Array:
    """An Arrow array of (n,) strings; None becomes null.

    >>> strings(["a", "", "ε"]).to_pylist()
    ['a', '', 'ε']

    Raises:
        OverflowError: they take 2 GiB or more.
    """
    values = values.tolist() if isinstance(values, np.ndarray) else values
    encoded = [b"" if value is None else value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"a column of {ends[-1]:,} bytes of text is too long; write more shards")
    offsets, content = pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(encoded))
    return pa.Array.from_buffers(pa.string(), len(encoded), [_validity(values), offsets, content])


def rows_of_numbers(values: np.ndarray, dtype: type) -> pa.Array:
    """An Arrow array of n lists of m numbers each, from (n, m) numbers."""
    n, m = values.shape
    offsets = numbers(m * np.arange(n + 1), np.int32)
    return pa.ListArray.from_arrays(offsets, numbers(values.reshape(-1), dtype))


def values_of(array: pa.Array) -> np.ndarray:
    """The numbers of an Arrow array without nulls, as a read-only view of its memory.

    >>> values_of(numbers([1, 2], np.int64))
    array([1, 2])
    """
    return np.from_dlpack(array)


def _validity(values: Sequence) -> pa.Buffer | None:
    known = [value is not None for value in values]
    return None if all(known) else pa.py_buffer(np.packbits(known, bitorder="little"))
