"""Random Fourier features, and the kernel mean classifier that is computed with them (methods/kernel_mean.py).

psi(x) = (cos(w_1 z), ..., cos(w_D z), sin(w_1 z), ..., sin(w_D z))/sqrt(D) of a point z(x), with w ~ N(0, 1/h^2), has
norm 1, and psi(x) psi(x') is a Gaussian kernel of bandwidth h on average (Rahimi and Recht 2007). Where a point lies
far from public ones its high frequencies are damped, which widens its kernel and only lowers the norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dpstudy.core.arrays import Array, Place, place, to_numpy
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensor_metadata, read_tensors, write_tensors
from dpstudy.models import linear
from dpstudy.models.layout import check_layout, positive
from dpstudy.models.linear import LinearModel, unit_rows
from dpstudy.models.probabilities import as_calibrated, check_calibration

LINKS = ("softmax", "sigmoid")
_INNER = "projection."
_LAYOUT = {"weights": "mf", "whole": "f", "frequencies": "Dp", "landmarks": "Np"}
_BLOCK_VALUES = 1 << 23  # of psi at once: 32 MB


def draw_frequencies(count: int, dim: int, bandwidth: float, seed: int) -> np.ndarray:
    """(count, dim) float32 random frequencies of a Gaussian kernel: public constants of (seed, count, dim)."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((count, dim), np.float32) / np.float32(bandwidth)


@dataclass(frozen=True)
class Landmarks:
    """Public points from which a point's bandwidth is derived (anon_smoothing Proposition 2, on public points).

    Attributes:
        points: (N, p) float32.
        neighbours: k of the mean distance to the nearest ones.
        threshold: lambda, beyond which a kernel is widened.
        extra: h c: a kernel is widened by h c distance/lambda.
    """

    points: np.ndarray
    neighbours: int
    threshold: float
    extra: float

    def distances(self, points: np.ndarray) -> np.ndarray:
        """(n,) the mean distances of (n, p) points to their nearest landmarks."""
        from dpstudy.models.kernel_density import Points  # which imports torch

        where = place(tensors=True)
        known = where.array(self.points)
        squares = Points(known, known.new_ones(len(known))).squared_distances(where.array(points))
        nearest = squares.topk(min(self.neighbours, len(known)), dim=1, largest=False).values
        return to_numpy(nearest.sqrt().mean(1))

    def widening(self, points: np.ndarray) -> np.ndarray:
        """(n,) h', the amount by which each point's kernel is wider than h."""
        distances = self.distances(points)
        return np.where(distances > self.threshold, self.extra * distances / self.threshold, np.float32(0))


@dataclass(frozen=True)
class FeatureMap:
    """The random feature map x -> psi(x).

    Attributes:
        frequencies: (D, p) float32.
        projection: released privately, or None: z(x) is x scaled to norm 1.
        link: of the projection's scores: z(x) is the square root of the softmax's probabilities, or of those of each
            label and its absence, so that it has norm 1.
        landmarks: for bandwidths by public points, or None.
    """

    frequencies: np.ndarray
    projection: LinearModel | None = None
    link: str = "softmax"
    landmarks: Landmarks | None = None

    @property
    def dim(self) -> int:
        """The number 2D of random features."""
        return 2 * len(self.frequencies)

    def points(self, features: np.ndarray) -> np.ndarray:
        """(n, p) float32 unit-norm points of (n, d) features."""
        if self.projection is None:
            return unit_rows(np.asarray(features, np.float32)).astype(np.float32)
        scores = self.projection.scores(features)
        with np.errstate(over="ignore"):  # of a score that is far below all others, or below 0: no chance at all
            if self.link == "softmax":
                odds = np.exp(scores - scores.max(1, keepdims=True))
                return np.sqrt(odds / odds.sum(1, keepdims=True))
            odds = 1 / (1 + np.exp(np.concatenate([-scores, scores], 1)))
        return np.sqrt(odds / scores.shape[1])

    def __call__(self, features: np.ndarray, where: Place) -> Array:
        """(n, 2D) psi, where asked for; no row has a norm above 1 by more than rounding."""
        points, count = self.points(features), len(self.frequencies)
        frequencies = where.array(self.frequencies)
        angles, psi = where.array(points) @ frequencies.T, where.empty(len(points), self.dim)
        where.xp.cos(angles, out=psi[:, :count])
        where.xp.sin(angles, out=psi[:, count:])
        psi /= math.sqrt(count)
        if self.landmarks is not None:
            widening = where.array(self.landmarks.widening(points))
            damping = where.xp.exp(-0.5 * widening[:, None] ** 2 * (frequencies**2).sum(1))
            psi[:, :count] *= damping
            psi[:, count:] *= damping
        return psi

    def rows(self) -> int:
        """The number of records in a block of a pass."""
        return max(1, _BLOCK_VALUES // self.dim)


@dataclass(frozen=True)
class RandomFeatureModel:
    """A linear classifier on random features: score_t = weights_t psi(x).

    It is divided by max(floor, whole psi(x)) where `whole` is given.

    Attributes:
        weights: (m, 2D) float32.
        whole: (2D,) float32: the sum over all records as released, or None.
        floor: the least that is divided by.
    """

    map: FeatureMap
    weights: np.ndarray
    whole: np.ndarray | None = None
    floor: float = 1.0
    metadata: dict[str, str] = field(default_factory=dict)

    def scores(self, features: np.ndarray) -> np.ndarray:
        """(n, m) float32 scores of (n, d) features."""
        where = place()
        weights = where.array(self.weights).T
        all_scores = np.empty((len(features), len(self.weights)), np.float32)
        for start in range(0, len(features), self.map.rows()):
            part = slice(start, start + self.map.rows())
            psi = self.map(features[part], where)
            scores = psi @ weights
            if self.whole is not None:
                density = psi @ where.array(self.whole)
                scores /= density.clip(self.floor, None)[:, None]
            all_scores[part] = to_numpy(scores)
        return as_calibrated(all_scores, self.metadata)

    @property
    def inputs(self) -> int:
        """The number d of features."""
        return self.map.projection.inputs if self.map.projection else self.map.frequencies.shape[1]

    @property
    def parameters(self) -> int:
        """The number of released numbers in the model."""
        inner = self.map.projection.parameters if self.map.projection else 0
        return self.weights.size + inner

    @property
    def finite(self) -> bool:
        """Whether no weight is NaN or infinite."""
        return bool(np.isfinite(self.weights).all()) and (self.map.projection is None or self.map.projection.finite)

    def save(self, path) -> None:
        """Write the model as safetensors."""
        tensors = {"weights": self.weights, "frequencies": self.map.frequencies}
        facts = {"kind": "random-features", "link": self.map.link, "floor": repr(self.floor)}
        if self.whole is not None:
            tensors["whole"] = self.whole
        if (inner := self.map.projection) is not None:
            arrays = {name: getattr(inner, name) for name in ("weights", "bias", "center", "scale")}
            tensors |= {f"projection.{name}": value for name, value in arrays.items() if value is not None}
            facts["projection_unit"] = str(inner.unit)
        if (marks := self.map.landmarks) is not None:
            tensors["landmarks"] = marks.points
            facts |= {key: repr(getattr(marks, key)) for key in ("neighbours", "threshold", "extra")}
        write_tensors(path, tensors, facts | self.metadata)

    @classmethod
    def load(cls, path) -> RandomFeatureModel:
        """Read a model that `save` wrote.

        Raises:
            StudyError: the file holds something else.
        """
        facts, tensors = read_tensor_metadata(path), read_tensors(path)
        inner = {name.removeprefix(_INNER): tensors.pop(name) for name in list(tensors) if name.startswith(_INNER)}
        check_layout(path, tensors, _LAYOUT, "whole landmarks")
        check_calibration(path, facts, len(tensors["weights"]))
        projection = None
        if inner:
            check_layout(path, inner, linear.LAYOUT, linear.OPTIONAL)
            lines = inner["weights"], inner["bias"], inner.get("center"), inner.get("scale")
            projection = LinearModel(*lines, unit=linear.is_true(path, facts, "projection_unit"))
        marks = None
        if "landmarks" in tensors:
            near, *numbers = (positive(path, facts, name) for name in ("neighbours", "threshold", "extra"))
            marks = Landmarks(tensors["landmarks"], math.ceil(near), *numbers)
        mapping = FeatureMap(tensors["frequencies"], projection, facts["link"], marks)
        model = cls(mapping, tensors["weights"], tensors.get("whole"), positive(path, facts, "floor"), facts)
        points = mapping.frequencies.shape[1]
        scores = len(projection.bias) * (1 if mapping.link == "softmax" else 2) if projection else points
        if mapping.link not in LINKS or scores != points or model.weights.shape[1] != mapping.dim:
            raise StudyError(
                f"{path}: its frequencies, its link {mapping.link!r} and its projection do not fit together"
            )
        return model
