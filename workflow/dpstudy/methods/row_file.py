"""Features on disk, row by row, for mini-batches of data that do not fit in memory."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np

_READ_BYTES = 1 << 30  # one read gives 2 GiB at most


class RowFile:
    """(rows, dim) values in an unnamed temporary file, which only its owner can open and which ends with the process.

    It lies where TMPDIR says, /tmp otherwise.

    Attributes:
        dtype: of the values.
    """

    def __init__(self, dim: int, dtype: Any):
        self._file = tempfile.TemporaryFile(prefix="dpstudy-", buffering=0)
        self._rows, self._dim, self.dtype = 0, dim, np.dtype(dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, dim)"""
        return self._rows, self._dim

    def __len__(self) -> int:
        return self._rows

    def append(self, values: np.ndarray) -> None:
        """Append (n, dim) values.

        Raises:
            OSError: the disk is full.
        """
        left = np.ascontiguousarray(values, self.dtype).reshape(-1).view(np.uint8).data
        while left:
            left = left[self._file.write(left) :]
        self._rows += len(values)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """(n, dim) values of a slice of rows, or of (n,) row numbers."""
        if not isinstance(rows, slice):
            read = np.empty((len(rows), self._dim), self.dtype)
            for values, place in zip(read, np.asarray(rows).tolist(), strict=True):
                self._read(values, place)
            return read
        start, stop, step = rows.indices(self._rows)
        if step != 1:
            raise ValueError(f"rows {rows}: only neighbours are read together")
        read = np.empty((max(0, stop - start), self._dim), self.dtype)
        self._read(read, start)
        return read

    def _read(self, values: np.ndarray, row: int) -> None:
        """Fill the contiguous array `values` from the file, starting at a row."""
        left, place = values.reshape(-1).view(np.uint8).data, row * self._dim * self.dtype.itemsize
        while left:
            got = os.preadv(self._file.fileno(), [left[:_READ_BYTES]], place)
            if not got:
                raise EOFError(f"row {row}: the file of rows ends before it")
            left, place = left[got:], place + got
