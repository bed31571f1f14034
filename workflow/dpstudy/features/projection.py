"""Projections fitted on public data (see `fits`); a record's projection depends on that record alone."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_tensors
from dpstudy.features.blocks import in_blocks
from dpstudy.models.layout import check_layout

_FILE = "projection.safetensors"
_BLOCK = 64  # rows at a time
_LAYOUT = {"mean": "d", "components": "kd", "eigenvalues": "k", "center": "d", "scale": "d"}


def standardised(features: np.ndarray, center: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The rows (n, d) of (features - center) * scale, each divided by its norm."""
    rows = (features - center) * scale
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)


class Projection:
    """The projection (features - mean) components^T of features (n, d), as (n, k) float32.

    Where the fit standardises, `features` are `standardised` first.
    """

    def __init__(self, folder: str | os.PathLike):
        tensors = read_tensors(Path(folder) / _FILE)
        self.card = read_json(Path(folder) / "card.json")
        standardises = not {"center", "scale"}.isdisjoint(tensors)  # both, or neither
        check_layout(Path(folder) / _FILE, tensors, _LAYOUT, "eigenvalues" + " center scale" * (not standardises))
        self._mean, self._components = tensors["mean"], tensors["components"]
        self._standard = (tensors["center"], tensors["scale"]) if standardises else None
        self._padded: Any = None  # the components, as torch multiplies by them

    @property
    def dim(self) -> int:
        """The number k of projected features."""
        return len(self._components)

    def check(self, dim: int) -> None:
        """Check that the projection takes features of length `dim`.

        Raises:
            StudyError: it does not.
        """
        if dim != len(self._mean):
            raise StudyError(
                f"fit {self.card['fit']!r} takes {len(self._mean)} features a record, these images give {dim}: give "
                "its public set the same `size` and `channels` as the data set"
            )

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """(n, k) float32."""
        if self._standard:
            features = standardised(features, *self._standard)
        return in_blocks(self._product, features - self._mean, _BLOCK)

    def _product(self, rows: np.ndarray) -> np.ndarray:
        if not find_spec("torch"):  # as with a bundle's receiver; NumPy's products round by a row's place
            return np.stack([self._components @ row for row in rows])
        import torch

        if self._padded is None:
            self._padded = _aligned(torch.from_numpy(self._components)).T
        return (_aligned(torch.from_numpy(rows)) @ self._padded).numpy()


def _aligned(matrix):
    """Zeros behind each row of a tensor, so that all rows begin at multiples of 64 bytes: kernels for small matrices
    round by where a row begins."""
    from torch.nn.functional import pad

    return pad(matrix, (0, -matrix.shape[1] % 16))
