"""Models: what training produces and prediction needs."""

from typing import Protocol

import numpy as np


class Model(Protocol):
    """What every model has."""

    def scores(self, features: np.ndarray) -> np.ndarray:
        """(n, m) float32 scores of (n, d) features."""

    @property
    def inputs(self) -> int:
        """d."""

    @property
    def parameters(self) -> int:
        """How many numbers the model holds."""

    @property
    def finite(self) -> bool:
        """Whether no number is NaN or infinite."""

    def save(self, path) -> None:
        """Write the model as safetensors."""
