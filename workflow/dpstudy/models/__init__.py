"""Models: the result of training, and all that prediction needs."""

from typing import Protocol

import numpy as np


class Model(Protocol):
    """The interface of models."""

    def scores(self, features: np.ndarray) -> np.ndarray:
        """(n, m) float32 scores of (n, d) features."""

    @property
    def inputs(self) -> int:
        """The number d of features."""

    @property
    def parameters(self) -> int:
        """The number of numbers in the model."""

    @property
    def finite(self) -> bool:
        """Whether no number is NaN or infinite."""

    def save(self, path) -> None:
        """Write the model as safetensors."""
