"""Statistics of a public set's embeddings by which images are compared: mean, principal components, and a sample.

All of it is public. Embeddings are rotated to the principal components of the public images and divided by their
standard deviations, which tells pictures apart much better than the coefficients as they are. The sample says how
near an image that is no copy comes to a private one, which differs by far between photographs and pen strokes.
"""

import os
from dataclasses import dataclass

import numpy as np

from dpstudy.data.records import concatenate
from dpstudy.dedup.describe import Description

SAMPLE = 20_000
_DIRECTIONS = 200
_FLOOR = 1e-7  # variance below which a direction is noise of float16


@dataclass(frozen=True)
class Basis:
    """The mean and scaled principal components of public embeddings, and a sample of public images.

    Attributes:
        means: form ("grey" or "colour") -> (d,) mean.
        directions: form -> (d, k) scaled principal components.
        sample: descriptions of public images, at most SAMPLE.
    """

    means: dict[str, np.ndarray]
    directions: dict[str, np.ndarray]
    sample: Description

    def vectors(self, form: str, embeddings: np.ndarray) -> np.ndarray:
        """(..., k) float32 unit vectors of (..., d) embeddings in this basis."""
        projected = (embeddings.astype(np.float32) - self.means[form]) @ self.directions[form]
        return projected / np.maximum(np.linalg.norm(projected, axis=-1, keepdims=True), 1e-12)


def fit(sample: Description) -> Basis:
    """The basis of a sample of public images."""
    means, directions = {}, {}
    for form in ("grey", "colour"):
        embeddings = getattr(sample, form)
        if embeddings is None:
            continue
        embeddings = embeddings[:, 0].astype(np.float64)
        means[form] = embeddings.mean(0).astype(np.float32)
        centred = embeddings - embeddings.mean(0)
        values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
        largest = np.argsort(values)[::-1][:_DIRECTIONS]
        largest = largest[values[largest] > 0]
        directions[form] = (vectors[:, largest] / np.sqrt(values[largest] + _FLOOR)).astype(np.float32)
    return Basis(means, directions, sample)


def fit_basis(descriptions: list[str | os.PathLike], path: str | os.PathLike) -> None:
    """Write the sample of a public set's first images that its basis is fitted to.

    Args:
        descriptions: of its shards, in order; as many are read as the sample needs.

    Raises:
        ValueError: there is none.
    """
    parts: list[Description] = []
    for each in descriptions:
        parts.append(Description.read(each))
        if sum(map(len, parts)) >= SAMPLE:
            break
    if not parts:
        raise ValueError("a basis needs the description of a shard")
    sample = concatenate(parts)
    sample.take(np.arange(min(SAMPLE, len(sample)))).write(path, private=False)


def read_basis(path: str | os.PathLike) -> Basis:
    """The basis of the sample that `fit_basis` wrote.

    Raises:
        StudyError: the file is missing or damaged.
    """
    return fit(Description.read(path))
