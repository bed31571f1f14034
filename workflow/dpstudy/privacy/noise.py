"""The only place of the library that draws Gaussian noise for a release.

Streams are keyed by (mode, key of the run, name of the release, step) and never reused: the same key twice is
an error, not a repetition. The source counts what it draws, so that a run can be held against its ledger.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Mapping

import numpy as np
from scipy.special import ndtri

MODES = ("seeded", "secure")
_BLOCK = 1 << 20


class NoiseSource:
    """Noise and sampling randomness of one seed of one run.

    Args:
        mode: "seeded" (reproducible research, never for release) or "secure" (the operating system's entropy).
        key: what tells this run from every other: (cell, phase, trial or audit run, seed).
        shared: a control without any guarantee, the fault of mehta2023's released code: one vector is drawn for each
            release and added to every row (class), tensor and step of it, so that differences between classes are
            released without noise.
    """

    def __init__(self, mode: str, *key: object, shared: bool = False):
        if mode not in MODES:
            raise ValueError(f"noise mode {mode!r}: one of {MODES}")
        self.mode = mode
        self.shared = shared
        self._vectors: dict[str, np.ndarray] = {}
        self.key = tuple(str(part) for part in key)
        self.drawn: Counter[str] = Counter()
        self._used: dict[tuple[str, int], set[str]] = {}  # (release, step) -> tensors drawn
        self.took_part: dict[str, tuple[int, int]] = {}  # release -> (units taken, units that could be), never stored
        self.resumed = False
        self.untouched = True  # nothing was drawn or sampled: another seed gives the same

    def gaussian(
        self, name: str, shape: tuple[int, ...], std: float, step: int = 0, tensor: str = "", dtype=np.float32
    ) -> np.ndarray:
        """Independent Gaussian noise of standard deviation `std` and the given shape.

        One release of several tensors draws each under its own `tensor` name; the release is counted once.

        Raises:
            RuntimeError: this (name, step, tensor) was drawn before: noise would be shared.
        """
        self.untouched = False
        tensors = self._used.setdefault((name, step), set())
        if tensor in tensors:
            raise RuntimeError(f"noise for release {name!r}, step {step}, tensor {tensor!r} was already drawn")
        self.drawn[name] += not tensors
        tensors.add(tensor)
        if not 0 <= std < np.inf:
            raise ValueError(f"release {name!r}: standard deviation must be >= 0 and finite, got {std}")
        if self.shared:
            if name not in self._vectors:
                self._vectors[name] = self._draw(shape[-1:], std, dtype, name, 0, "")
            return np.broadcast_to(self._vectors[name], shape).copy()
        return self._draw(shape, std, dtype, name, step, tensor)

    def resume(self, drawn: Mapping[str, int]) -> None:
        """Take over the count of what an interrupted run drew before this one goes on where it was."""
        if self.drawn:
            raise RuntimeError(f"releases were drawn before the run was resumed: {dict(self.drawn)}")
        self.untouched, self.resumed = False, True
        self.drawn = Counter(drawn)

    def _draw(self, shape: tuple[int, ...], std: float, dtype, *release: object) -> np.ndarray:
        if self.mode == "secure":
            return _secure_normal(shape, std, dtype)
        stream = self._stream("noise", *release)
        noise = stream.standard_normal(shape, dtype=np.float64 if np.dtype(dtype) == np.float64 else np.float32)
        noise *= noise.dtype.type(std)
        return noise

    def sampling(self, name: str) -> np.random.Generator:
        """The generator that decides who takes part in the releases called `name`."""
        self.untouched = False
        if self.mode == "secure":
            return np.random.Generator(np.random.PCG64DXSM(int.from_bytes(os.urandom(32), "little")))
        return self._stream("sampling", name)

    def took(self, name: str, taken: int, units: int) -> None:
        """Count who took part in a sampled release, for `check_run`: private, and kept in memory alone."""
        before = self.took_part.get(name, (0, 0))
        self.took_part[name] = before[0] + taken, before[1] + units

    def _stream(self, *parts: object) -> np.random.Generator:
        text = "\x1f".join([*self.key, *map(str, parts)])
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")
        return np.random.Generator(np.random.PCG64DXSM(seed))


def _secure_normal(shape: tuple[int, ...], std: float, dtype) -> np.ndarray:
    """Normals by inversion of 53-bit uniforms from the operating system's entropy."""
    noise = np.empty(int(np.prod(shape)), dtype=dtype)
    for start in range(0, noise.size, _BLOCK):
        size = min(_BLOCK, noise.size - start)
        bits = np.frombuffer(os.urandom(8 * size), dtype=np.uint64) >> np.uint64(11)
        noise[start : start + size] = std * ndtri((bits.astype(np.float64) + 0.5) * 2.0**-53)
    return noise.reshape(shape)


def symmetric_gaussian(
    source: NoiseSource, name: str, dim: int, std: float, step: int = 0, tensor: str = ""
) -> np.ndarray:
    """A symmetric (dim, dim) float32 noise matrix: diagonal sd `std`, off-diagonal sd std/sqrt(2).

    It is the isometric mechanism on symmetric matrices: in the coordinates (diagonal, sqrt(2) x upper triangle),
    whose Euclidean norm is the Frobenius norm, the noise is iid with sd `std`. Hence its noise multiplier is
    std / Frobenius sensitivity. Noising a full matrix iid and averaging it with its transpose gives the same law.
    """
    packed = source.gaussian(name, (dim * (dim + 1) // 2,), std, step, tensor)
    matrix = np.empty((dim, dim), dtype=np.float32)
    scale = np.float32(1 / np.sqrt(2))
    start = 0
    for row in range(dim):
        part = packed[start : start + dim - row]
        start += dim - row
        matrix[row, row] = part[0]
        matrix[row, row + 1 :] = part[1:] * scale
        matrix[row + 1 :, row] = matrix[row, row + 1 :]
    return matrix


def square_gaussian(
    source: NoiseSource, name: str, dim: int, std: float, step: int = 0, tensor: str = ""
) -> np.ndarray:
    """A (dim, dim) float32 matrix of independent noise of standard deviation `std`; multiplier std/Frobenius norm."""
    return source.gaussian(name, (dim * dim,), std, step, tensor).reshape(dim, dim)
