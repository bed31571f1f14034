"""Arrays of linear methods: NumPy's, or torch's on a GPU and for large data.

Importing torch takes three times as long as all the rest of a short cell, so it is imported where that pays. Both
spell most of what is needed alike; what they do not is here. `xp` is the module, numpy or torch.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from dpstudy.core.errors import StudyError

Array: TypeAlias = Any  # a numpy.ndarray or a torch.Tensor; which of them a type checker cannot know
SWITCH = "DPSTUDY_GPU"
_GIVEN = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_DRIVERS = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dxg")  # NVIDIA's, AMD's, and Windows' under WSL


@dataclass(frozen=True)
class Place:
    """An array library and device: (numpy, "cpu"), (torch, "cpu") or (torch, "cuda")."""

    xp: ModuleType
    device: str

    def array(self, values, dtype: str | None = None) -> Array:
        """`values`, an array or a tensor, as an array of this library and device; copied only where it must be."""
        if self.xp is np:
            values = to_numpy(values)
        return self.xp.asarray(values, dtype=dtype and getattr(self.xp, dtype), device=self.device)

    def zeros(self, *shape: int, dtype: str = "float32") -> Array:
        """Zeros of this shape."""
        return self.xp.zeros(shape, dtype=getattr(self.xp, dtype), device=self.device)

    def empty(self, *shape: int, dtype: str = "float32") -> Array:
        """An uninitialised array of this shape."""
        return self.xp.empty(shape, dtype=getattr(self.xp, dtype), device=self.device)

    def places(self, count: int) -> Array:
        """The integers 0, 1, ..., count - 1."""
        return self.xp.arange(count, device=self.device)


HOST = Place(np, "cpu")


def place(tensors: bool = False) -> Place:
    """The library and device to compute with: the GPU if there is one, else NumPy, or torch where `tensors` are wanted.

    Matrix products and convolutions keep float32's precision on the GPU too, and convolutions give the same bits each
    time. Without a GPU's driver torch is not even asked for one.
    """
    if tensors or has_driver():
        import torch

        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
        if torch.cuda.is_available():
            return Place(torch, "cuda")
        if tensors:
            return Place(torch, "cpu")
    return HOST


def has_driver() -> bool:
    """Whether torch may find a GPU here; the environment variable DPSTUDY_GPU (0 or 1) decides where it is set.

    A job of SLURM that was given no GPU has none, whatever its node has.

    Raises:
        StudyError: the variable says something else.
    """
    if switch := os.environ.get(SWITCH, ""):
        if switch not in ("0", "1"):
            raise StudyError(f"{SWITCH}={switch}: is 1 where jobs have a GPU, 0 where they have none, or not set")
        return switch == "1"
    if "SLURM_JOB_ID" in os.environ and not any(map(os.environ.get, _GIVEN)):
        return False
    return any(map(os.path.exists, _DRIVERS)) or shutil.which("nvidia-smi") is not None


def place_of(values: Array) -> Place:
    """The library and device of `values`."""
    return HOST if isinstance(values, np.ndarray) else Place(sys.modules["torch"], values.device.type)


def to_numpy(values: Array) -> np.ndarray:
    """The same numbers as a NumPy array, which shares memory where it can."""
    return values if isinstance(values, np.ndarray) else values.detach().cpu().numpy()


def take(values: Array, rows: Array) -> Array:
    """The rows of `values` that (b,) indices select; several times as fast as values[rows] on a CPU."""
    return values.take(rows, axis=0) if isinstance(values, np.ndarray) else values.index_select(0, rows)


def row_norms(values: Array) -> Array:
    """(n,) float64 Euclidean norms of the rows of (n, d); in float32, long rows' norms are too small by up to 0.5 %."""
    if isinstance(values, np.ndarray):
        wide = np.asarray(values, np.float64)
        return np.sqrt(np.vecdot(wide, wide))
    torch = sys.modules["torch"]
    return torch.linalg.vector_norm(values, dim=1, dtype=torch.float64)


def scores_of(weights: Array, features: Array) -> Array:
    """(m, n) scores of (n, d) features: weights (m, d) times features^T, in row-major order."""
    if isinstance(features, np.ndarray):  # twice as fast as the other order of the product, and a copy
        return np.ascontiguousarray((features @ np.ascontiguousarray(weights).T).T)
    return weights @ features.T


def softmax(scores: Array) -> Array:
    """The softmax of (m, n) scores over the classes; `scores` may be overwritten."""
    if not isinstance(scores, np.ndarray):
        return sys.modules["torch"].softmax(scores, 0)
    scores -= scores.max(0)
    np.exp(scores, out=scores)
    scores /= scores.sum(0)
    return scores


def sigmoid(scores: Array) -> Array:
    """The sigmoid 1/(1 + exp(-scores)); `scores` may be overwritten."""
    if not isinstance(scores, np.ndarray):
        return scores.sigmoid_()
    np.negative(scores, out=scores)
    np.exp(scores, out=scores)
    scores += 1
    return np.reciprocal(scores, out=scores)


def add_scaled(total: Array, values: Array, factor: float) -> None:
    """Add factor * values to `total` in place."""
    if isinstance(total, np.ndarray):
        with np.errstate(over="ignore", invalid="ignore"):  # a training that diverges is refused at its end
            total += factor * values
    else:
        total.add_(values, alpha=factor)


def subtract_targets(scores: Array, labels: Array) -> None:
    """Subtract from (m, n) scores the labels, (n,) class indices or (n, m) zeros and ones, in place."""
    if labels.ndim == 2:
        scores -= labels.T
    elif isinstance(scores, np.ndarray):
        scores[labels, np.arange(len(labels))] -= 1
    else:
        scores.scatter_add_(0, labels[None], scores.new_full((1, len(labels)), -1.0))


def one_hot(labels: Array, classes: int) -> Array:
    """(n, m) float32 one-hot vectors of (n,) class indices."""
    where = place_of(labels)
    encoded = where.zeros(len(labels), classes)
    encoded[where.places(len(labels)), labels] = 1.0
    return encoded


def threads_of_products() -> int:
    """The number of threads of a matrix product."""
    if "torch" in sys.modules:
        return sys.modules["torch"].get_num_threads()
    from threadpoolctl import threadpool_info

    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)
