"""The source of all Gaussian noise for releases, and the only way to release a private sum.

Streams are keyed by (mode, key of the run, name of the release, step) and never reused: the same key twice is
an error, not a repetition. The source counts what it draws, so that a run can be held against its ledger.
"""

import hashlib
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.privacy.secure_noise import MARGIN, grid_gaussian
from dpstudy.privacy.secure_sampling import AnyGenerator, SecureGenerator
from dpstudy.privacy.selection import choose

MODES = ("seeded", "secure")


class NoiseSource:
    """The source of noise and sampling randomness for one seed of one run.

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
        self._used: dict[tuple[str, int], dict[str, float]] = {}  # (release, step) -> tensor drawn -> its deviation
        self._earlier: dict[str, Counter[float]] = {}  # of releases that another source made: as `deviations`
        self.took_part: dict[str, tuple[int, int]] = {}  # release -> (units taken, units that could be), never stored
        self.sizes: dict[str, dict[str, int]] = {}  # release -> tensor -> how many numbers it has
        self.transcript: list[tuple[str, int, str, np.ndarray]] | None = None  # for audits: what was released
        self.resumed = False
        self.bare: set[tuple[str, int, str]] = set()  # (release, step, tensor) of noise that `released` added to no sum
        self.rounded: set[str] = set()  # releases of sums in float32
        self.untouched = True  # nothing was drawn or sampled: another seed gives the same
        self.drew = False  # a release was made, by this source or a part of it
        self._whole = self

    @property
    def title(self) -> str:
        """A readable name of the run: "digits/pixels/net/eps=2, seed 1"."""
        if len(self.key) != 4:
            return " ".join(self.key)
        cell, phase, trial, seed = self.key
        return f"{cell}, seed {seed}" if phase == "train" else f"{cell}, {phase} {trial}"

    def released(
        self, name: str, query: np.ndarray, std: float, step: int = 0, tensor: str = "", symmetric: bool = False
    ) -> np.ndarray:
        """The private sum with Gaussian noise of standard deviation `std` on each number, safe to release.

        One release of several tensors noises each under its own `tensor` name; the release is counted once. In mode
        "secure" sum and noise lie on one grid (privacy/secure_noise.py).

        Args:
            query: float32 or float64, any shape; it is left as it is.
            symmetric: the query is a symmetric (d, d) matrix, and so is what is released. The noise of its diagonal has
                the standard deviation `std`, that of the rest std/sqrt(2): in the coordinates (diagonal, sqrt(2) x
                upper triangle), whose Euclidean norm is the Frobenius norm, the noise is iid. Hence its noise
                multiplier is std / Frobenius sensitivity. Noising a full matrix iid and averaging it with its transpose
                gives the same law.

        Raises:
            TypeError: the query is no such array.
            RuntimeError: this (name, step, tensor) was released before: noise would be shared.
        """
        if not isinstance(query, np.ndarray) or query.dtype not in (np.float32, np.float64):
            kind = f"an array of {query.dtype}" if isinstance(query, np.ndarray) else type(query).__name__
            raise TypeError(f"release {name!r}: must be a NumPy array of float32 or float64, got {kind}")
        if query.dtype == np.float32:
            self.rounded.add(name)
        self.sizes.setdefault(name, {})[tensor] = query.size
        if symmetric:
            noisy = self._symmetric(name, query, std, step, tensor)
        elif self._on_grid(std):
            self._enter(name, std, step, tensor)
            noisy = _on_grid(query, std).astype(query.dtype)
        else:
            noisy = query + self.gaussian(name, query.shape, std, step, tensor, query.dtype)
        self.bare.discard((name, step, tensor))
        if self.transcript is not None:
            self.transcript.append((name, step, tensor, noisy.copy()))
        return noisy

    def _symmetric(self, name: str, query: np.ndarray, std: float, step: int, tensor: str) -> np.ndarray:
        dim, start, beside = len(query), 0, std / math.sqrt(2)
        secure = self._on_grid(std)
        if secure:
            self._enter(name, std, step, tensor)
            law = grid_gaussian(beside * (1 + MARGIN))
            diagonal, noise = _on_grid(query.diagonal(), std), law.noise((dim * (dim - 1) // 2,))
        else:
            packed = self.gaussian(name, (dim + dim * (dim - 1) // 2,), std, step, tensor, query.dtype)
            diagonal, noise = query.diagonal() + packed[:dim], packed[dim:]
            noise *= noise.dtype.type(1 / math.sqrt(2))
        noisy = np.empty((dim, dim), dtype=query.dtype)
        noisy[np.diag_indices(dim)] = diagonal
        for row in range(dim - 1):
            above = query[row, row + 1 :]
            part = noise[start : start + len(above)]
            start += len(above)
            noisy[row, row + 1 :] = (law.rounded(above) if secure else above) + part
            noisy[row + 1 :, row] = noisy[row, row + 1 :]
        return noisy

    def gaussian(
        self, name: str, shape: tuple[int, ...], std: float, step: int = 0, tensor: str = "", dtype=np.float32
    ) -> np.ndarray:
        """Gaussian noise of standard deviation `std` and the given shape, without a sum to add it to.

        Raises:
            RuntimeError: this (name, step, tensor) was drawn before: noise would be shared.
            StudyError: one vector is to be shared by tensors that it does not fit.
        """
        self.bare.add((name, step, tensor))
        self._enter(name, std, step, tensor)
        if self.shared:
            if name not in self._vectors:
                self._vectors[name] = self._draw(shape[-1:], std, dtype, name, 0, "")
            if self._vectors[name].shape != shape[-1:]:
                raise StudyError(
                    f"shared_noise: the release {name!r} has tensors with rows of {len(self._vectors[name])} and of "
                    f"{shape[-1]} numbers, to which no one vector can be added; the control is for linear methods"
                )
            return np.broadcast_to(self._vectors[name], shape).copy()
        return self._draw(shape, std, dtype, name, step, tensor)

    def _enter(self, name: str, std: float, step: int, tensor: str) -> None:
        """Count a release, once for all its tensors."""
        self.untouched = False
        self.drew = self._whole.drew = True
        tensors = self._used.setdefault((name, step), {})
        if tensor in tensors:
            raise RuntimeError(f"noise for release {name!r}, step {step}, tensor {tensor!r} was already drawn")
        self.drawn[name] += not tensors
        tensors[tensor] = std
        if not 0 <= std < np.inf:
            raise ValueError(f"release {name!r}: standard deviation must be >= 0 and finite, got {std}")

    def _on_grid(self, std: float) -> bool:
        return self.mode == "secure" and not self.shared and 0 < std < np.inf

    def deviations(self) -> dict[str, dict[float, int]]:
        """Release -> noise standard deviation -> number of releases with it; public, like the run's plan.

        Of a release of several tensors the smallest counts: its noise multiplier is that of the least protected one.
        """
        counts_by_name = {name: Counter(counts) for name, counts in self._earlier.items()}
        for (name, _), tensors in self._used.items():
            counts_by_name.setdefault(name, Counter())[min(tensors.values())] += 1
        return {name: dict(counts) for name, counts in counts_by_name.items()}

    def resume(self, made: Mapping[str, Sequence[Sequence[float]]]) -> None:
        """Restore the counts of an interrupted run before it continues.

        Args:
            made: what its `made` gave.
        """
        if self.drawn:
            raise RuntimeError(f"releases were drawn before the run was resumed: {dict(self.drawn)}")
        self.untouched, self.resumed, self.drew = False, True, True
        self._earlier = {name: Counter({std: times for std, times in pairs}) for name, pairs in made.items()}
        self.drawn = Counter({name: counts.total() for name, counts in self._earlier.items()})

    def made(self) -> dict[str, list[tuple[float, int]]]:
        """`deviations` in JSON form, for `resume`."""
        return {name: list(counts.items()) for name, counts in self.deviations().items()}

    def _draw(self, shape: tuple[int, ...], std: float, dtype, *release: object) -> np.ndarray:
        if self.mode == "secure":
            return grid_gaussian(std).noise(shape).astype(dtype) if std else np.zeros(shape, dtype)
        stream = self._stream("noise", *release)
        noise = stream.standard_normal(shape, dtype=np.float64 if np.dtype(dtype) == np.float64 else np.float32)
        noise *= noise.dtype.type(std)
        return noise

    def chosen(self, name: str, scores: Sequence[float], epsilon: float) -> int:
        """The index of a candidate chosen by the exponential mechanism (privacy/selection.py).

        Args:
            scores: on private records; a unit only ever adds to them, at most 1 to each.
            epsilon: what the choice costs; infinite: the best is taken.

        Raises:
            RuntimeError: `name` was released before.
        """
        return choose(scores, epsilon, self.word(name, 0.0 if math.isinf(epsilon) else 1 / epsilon))

    def word(self, name: str, scale: float, step: int = 0, tensor: str = "") -> int:
        """A uniform 256-bit number, from which a mechanism other than the Gaussian draws one release.

        Args:
            scale: of its noise, in the units of the release: what its event calls noise multiplier x sensitivity.

        Raises:
            RuntimeError: this (name, step, tensor) was released before.
        """
        self._enter(name, scale, step, tensor)
        beside = (step, tensor) if step or tensor else ()
        drawn = os.urandom(32) if self.mode == "secure" else self._stream("choice", name, *beside).bytes(32)
        return int.from_bytes(drawn, "little")

    def part(self, *key: object) -> "NoiseSource":
        """A separate noise source for a part of this run, such as one trial; it keeps its own counts."""
        part = NoiseSource(self.mode, *self.key, *key, shared=self.shared)
        part._whole = self._whole
        return part

    def adopt(self, other: "NoiseSource", deviations: Mapping[str, Mapping[float, int]] | None = None) -> None:
        """Add the counts of a part of this run to this source's.

        Args:
            deviations: of those of its releases that the ledger has in other units: as it has them, the part's own
                having been held against its plan.
        """
        self.untouched = False
        self.drawn += other.drawn
        self.bare |= other.bare
        self.rounded |= other.rounded
        for name, counts in {**other.deviations(), **(deviations or {})}.items():
            self._earlier.setdefault(name, Counter()).update(counts)
        self.sizes |= other.sizes
        for name, (taken, units) in other.took_part.items():
            self.took(name, taken, units)

    def sampling(self, name: str) -> AnyGenerator:
        """The generator that samples the units that take part in the releases called `name`."""
        self.untouched = False
        if self.mode == "secure":
            return SecureGenerator()
        return self._stream("sampling", name)

    def took(self, name: str, taken: int, units: int) -> None:
        """Count the units in a sampled release, for `check_run`; private, and kept in memory only."""
        before = self.took_part.get(name, (0, 0))
        self.took_part[name] = before[0] + taken, before[1] + units

    def _stream(self, *parts: object) -> np.random.Generator:
        text = "\x1f".join([*self.key, *map(str, parts)])
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")
        return np.random.Generator(np.random.PCG64DXSM(seed))


def _on_grid(query: np.ndarray, std: float) -> np.ndarray:
    """Query and noise, rounded to a grid of their own, in float64; noise a little larger, for the query's rounding."""
    law = grid_gaussian(std * (1 + MARGIN))
    noisy = law.rounded(query)
    noisy += law.noise(noisy.shape)
    return noisy
