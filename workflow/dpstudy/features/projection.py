"""Projections that were fitted on public data (see `fits`): what they make of a record depends on that record alone."""

import os
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_tensors
from dpstudy.models.layout import check_layout

_FILE = "projection.safetensors"
_LAYOUT = {"mean": "d", "components": "kd", "eigenvalues": "k", "center": "d", "scale": "d"}


def standardised(features: np.ndarray, center: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Rows (n, d) of (features - center) * scale, each divided by its own norm."""
    rows = (features - center) * scale
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)


class Projection:
    """features -> (features - mean) components^T, for features (n, d); the result is (n, k) float32.

    Where the fit standardises, `features` are `standardised` first.
    """

    def __init__(self, folder: str | os.PathLike):
        tensors = read_tensors(Path(folder) / _FILE)
        self.card = read_json(Path(folder) / "card.json")
        standardises = not {"center", "scale"}.isdisjoint(tensors)  # both, or neither
        check_layout(Path(folder) / _FILE, tensors, _LAYOUT, "eigenvalues" + " center scale" * (not standardises))
        self._mean, self._components = tensors["mean"], tensors["components"]
        self._standard = (tensors["center"], tensors["scale"]) if standardises else None

    @property
    def dim(self) -> int:
        """k."""
        return len(self._components)

    def check(self, dim: int) -> None:
        """Check that the fit takes features of so many numbers.

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
        return (features - self._mean) @ self._components.T
