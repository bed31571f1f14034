"""A trained network with its preprocessing."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensor_metadata, read_tensors, write_tensors
from dpstudy.models import networks
from dpstudy.models.layout import check_layout, shape_of
from dpstudy.models.names import enlarged
from dpstudy.models.probabilities import as_calibrated, check_calibration

_BLOCK = 512
_PIXELS = _BLOCK * 32 * 32  # at a time on a CPU: large images take more memory, and no longer in small blocks
_WEIGHTS = "network."


@dataclass(frozen=True)
class NetworkModel:
    """A network classifier: scores = network((x - center) * scale).

    Attributes:
        architecture, shape, classes: what `networks.build` makes the network from.
        state: parameter -> float32 array.
        center, scale: (d,) float32, privately released or public, or None.
        input_size: (h, w) that images are resized to for the network, or None: as they are.
    """

    architecture: str
    shape: tuple[int, ...]
    classes: int
    state: Mapping[str, np.ndarray]
    center: np.ndarray | None = None
    scale: np.ndarray | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    input_size: tuple[int, int] | None = None

    def scores(self, features: np.ndarray) -> np.ndarray:
        """(n, m) float32 scores of (n, d) features."""
        return self._scored(features)

    def scores_alone(self, features: np.ndarray) -> np.ndarray:
        """(n, m) float32 scores of (n, d) features, each record computed alone."""
        return self._scored(features, 1)

    def _scored(self, features: np.ndarray, size: int | None = None) -> np.ndarray:
        import torch

        shape = (self.shape[0], *self.input_size) if self.input_size else self.shape
        network = networks.build(self.architecture, shape, self.classes).eval()
        weights = {name: torch.from_numpy(value) for name, value in self.state.items()}
        fit = network.load_state_dict(weights, strict=False)
        if fit.unexpected_keys or set(fit.missing_keys) & dict(network.named_parameters()).keys():
            raise StudyError(f"network {self.architecture!r}: these weights are not its own")
        network.to(where := torch.device("cuda" if torch.cuda.is_available() else "cpu"))
        if size is None:
            pixels = math.prod(enlarged(self.architecture) or self.input_size or self.shape[1:])
            size = _BLOCK if where.type == "cuda" else min(_BLOCK, max(1, _PIXELS // pixels))
        scores = np.empty((len(features), self.classes), dtype=np.float32)
        with torch.inference_mode():
            for start in range(0, len(features), size):
                block = np.array(features[start : start + size], dtype=np.float32)  # own, hence writable
                block = block if self.center is None else block - self.center
                block = block if self.scale is None else block * self.scale
                records = torch.from_numpy(block.reshape(-1, *self.shape)).to(where)
                if self.input_size:
                    records = resized(records, self.input_size)
                scores[start : start + size] = network(records).cpu().numpy()
        return as_calibrated(scores, self.metadata)

    @property
    def inputs(self) -> int:
        """The number d of features."""
        return math.prod(self.shape)

    @property
    def parameters(self) -> int:
        """The number of weights and biases of the network."""
        return sum(value.size for value in self.state.values())

    @property
    def finite(self) -> bool:
        """Whether no weight is NaN or infinite."""
        return all(np.isfinite(value).all() for value in self.state.values())

    def save(self, path) -> None:
        """Write the model as safetensors."""
        tensors = {_WEIGHTS + name: value for name, value in self.state.items()}
        tensors |= {name: value for name in ("center", "scale") if (value := getattr(self, name)) is not None}
        facts = {"architecture": self.architecture, "shape": json.dumps(self.shape), "classes": str(self.classes)}
        facts |= {"input_size": json.dumps(self.input_size)} if self.input_size else {}
        write_tensors(path, tensors, {"kind": "network"} | facts | self.metadata)

    @classmethod
    def load(cls, path) -> "NetworkModel":
        """Read a model that `save` wrote.

        Raises:
            StudyError: the file holds something else, or weights of another network.
        """
        metadata, tensors = read_tensor_metadata(path), read_tensors(path)
        state = {name.removeprefix(_WEIGHTS): tensors.pop(name) for name in list(tensors) if name.startswith(_WEIGHTS)}
        check_layout(path, tensors, {"center": "d", "scale": "d"}, "center scale")
        shape = shape_of(path, metadata["shape"])
        if any(len(value) != math.prod(shape) for value in tensors.values()):
            raise StudyError(f"{path}: its center or scale is none of records of the shape {shape}")
        size = None
        if "input_size" in metadata:
            height, width = shape_of(path, metadata["input_size"])
            size = height, width
        architecture, classes = metadata["architecture"], int(metadata["classes"])
        taken = (shape[0], *(size or shape[1:]))
        check_calibration(path, metadata, classes)
        networks.check_promise(
            lambda: networks.build(architecture, taken, classes), state, f"{path}: {architecture!r} has other weights"
        )
        return cls(architecture, shape, classes, state, **tensors, metadata=metadata, input_size=size)


def resized(images, size: tuple[int, int]):
    """Images (n, C, H, W), a tensor, resized bilinearly with antialiasing."""
    from torch.nn.functional import interpolate

    return interpolate(images, size, mode="bilinear", antialias=True)
