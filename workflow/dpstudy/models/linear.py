"""Linear classifiers: scores = clip((x - center) * scale) @ weights.T + bias."""

from dataclasses import dataclass, field

import numpy as np

from dpstudy.files import read_tensor_metadata, read_tensors, write_tensors

_BLOCK = 8192


@dataclass(frozen=True)
class LinearModel:
    """A linear classifier with the preprocessing it was trained behind.

    Attributes:
        weights: (m, d) float32.
        bias: (m,) float32.
        center, scale: (d,) float32, a privately released normalisation, or None.
    """

    weights: np.ndarray
    bias: np.ndarray
    center: np.ndarray | None = None
    scale: np.ndarray | None = None
    metadata: dict[str, str] = field(default_factory=dict)

    def scores(self, features: np.ndarray) -> np.ndarray:
        """(n, m) float32 scores of (n, d) features."""
        weights, bias = self.folded()
        out = np.empty((len(features), len(bias)), dtype=np.float32)
        for start in range(0, len(features), _BLOCK):
            block = np.asarray(features[start : start + _BLOCK], dtype=np.float32)
            out[start : start + _BLOCK] = block @ weights.T + bias
        return out

    def folded(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (m, d) and bias (m,) that act on raw features: the normalisation is linear too."""
        if self.center is None:
            return self.weights, self.bias
        weights = self.weights * self.scale
        return weights, self.bias - weights @ self.center

    def save(self, path) -> None:
        """Write the model as safetensors."""
        tensors = {"weights": self.weights, "bias": self.bias}
        if self.center is not None:
            tensors |= {"center": self.center, "scale": self.scale}
        write_tensors(path, tensors, {"kind": "linear"} | self.metadata)

    @classmethod
    def load(cls, path) -> "LinearModel":
        """Read a model that `save` wrote."""
        return cls(**read_tensors(path), metadata=read_tensor_metadata(path))
