"""Linear classifiers: scores = ((x - center) * scale) @ weights.T + bias, optionally on records of unit norm."""

from dataclasses import dataclass, field

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensor_metadata, read_tensors, write_tensors
from dpstudy.models.layout import check_layout
from dpstudy.models.probabilities import as_calibrated, check_calibration

LAYOUT, OPTIONAL = {"weights": "md", "bias": "m", "center": "d", "scale": "d"}, "center scale"
_BLOCK = 2048
_SMALLEST_NORM = 1e-15


@dataclass(frozen=True)
class LinearModel:
    """A linear classifier with its preprocessing.

    Attributes:
        weights: (m, d) float32.
        bias: (m,) float32.
        center, scale: (d,) float32, privately released, or None.
        unit: records are scaled to norm 1 before the center is subtracted, and again afterwards.
    """

    weights: np.ndarray
    bias: np.ndarray
    center: np.ndarray | None = None
    scale: np.ndarray | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    unit: bool = False

    def scores(self, features: np.ndarray) -> np.ndarray:
        """(n, m) float32 scores of (n, d) features.

        Raises:
            ValueError: features of another number of columns.
        """
        if features.shape[1:] != self.weights.shape[1:]:
            raise ValueError(f"it takes {self.weights.shape[1]} features a record")
        weights, bias = (self.weights, self.bias) if self.unit else self.folded()
        # in float64, so that what rounding makes of a record's sums in other company is lost in float32
        weights = weights.astype(np.float64).T
        out = np.empty((len(features), len(bias)), dtype=np.float32)
        for start in range(0, len(features), _BLOCK):
            block = np.asarray(features[start : start + _BLOCK], dtype=np.float32)
            block = self._mapped(block) if self.unit else block
            out[start : start + _BLOCK] = block.astype(np.float64) @ weights + bias
        return as_calibrated(out, self.metadata)

    def _mapped(self, block: np.ndarray) -> np.ndarray:
        block = unit_rows(block)
        if self.center is not None:
            block = block - self.center
        if self.scale is not None:
            block = block * self.scale
        return unit_rows(block)

    def folded(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (m, d) and bias (m,) for raw features, with center and scale folded in.

        Raises:
            ValueError: records are scaled to unit norm, which is not linear.
        """
        if self.unit:
            raise ValueError("a model of unit-norm records cannot be folded into one matrix")
        weights = self.weights if self.scale is None else self.weights * self.scale
        return weights, self.bias if self.center is None else self.bias - weights @ self.center

    @property
    def inputs(self) -> int:
        """The number d of features."""
        return self.weights.shape[1]

    @property
    def parameters(self) -> int:
        """The number of weights and biases, m (d + 1)."""
        return self.weights.size + self.bias.size

    @property
    def finite(self) -> bool:
        """Whether no weight is NaN or infinite."""
        return bool(np.isfinite(self.weights).all() and np.isfinite(self.bias).all())

    def save(self, path) -> None:
        """Write the model as safetensors."""
        tensors = {"weights": self.weights, "bias": self.bias}
        tensors |= {name: value for name in ("center", "scale") if (value := getattr(self, name)) is not None}
        write_tensors(path, tensors, {"kind": "linear", "unit": str(self.unit)} | self.metadata)

    @classmethod
    def load(cls, path) -> "LinearModel":
        """Read a model that `save` wrote.

        Raises:
            StudyError: the file holds something else.
        """
        metadata, tensors = read_tensor_metadata(path), read_tensors(path)
        check_layout(path, tensors, LAYOUT, OPTIONAL)
        check_calibration(path, metadata, len(tensors["bias"]))
        return cls(**tensors, metadata=metadata, unit=is_true(path, metadata, "unit"))


def is_true(path, facts: dict[str, str], name: str) -> bool:
    """Whether the metadata field `name` of a file is "True"; False where it is missing.

    Raises:
        StudyError: it says neither True nor False.
    """
    if facts.get(name, "False") not in ("True", "False"):
        raise StudyError(f"{path}: {name} is {facts[name]!r}, and must be True or False")
    return facts.get(name) == "True"


def unit_rows(x: np.ndarray) -> np.ndarray:
    """(n, d) rows scaled to Euclidean norm 1; those below 1e-15 become zero, as in training."""
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    return np.where(norm < _SMALLEST_NORM, 0, x / np.maximum(norm, _SMALLEST_NORM))
