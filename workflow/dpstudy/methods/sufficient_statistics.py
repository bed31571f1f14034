"""The sums over records that least squares is made of, in one pass over the features.

They are private: a noisy release is what may leave. One pass serves every epsilon, regulariser, seed and trial.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import ssyrk

from dpstudy.errors import StudyError
from dpstudy.files import read_tensor_metadata, read_tensors, write_tensors
from dpstudy.methods.clipping import clip_rows, one_hot

_BLOCK = 8192


@dataclass(frozen=True)
class Statistics:
    """Sums over the clipped rows x_i (norm at most `clipping_norm`) with targets y_i in {0,1}^m.

    Attributes:
        gram: (d, d), sum of x x^T. Frobenius sensitivity C^2.
        targets: (m, d), sum of y x^T. Frobenius sensitivity C sqrt(k), k the most positives of a record.
        class_grams: (m, d, d), sums of x x^T over the positives of each class, or None. Sensitivity C^2 sqrt(k).
        clipping_norm: C; infinite where nothing was clipped.
        positives: k.
    """

    gram: np.ndarray
    targets: np.ndarray
    class_grams: np.ndarray | None
    clipping_norm: float
    positives: int

    def save(self, path) -> None:
        """Write the statistics, readable by their owner alone."""
        tensors = {"gram": self.gram, "targets": self.targets}
        if self.class_grams is not None:
            tensors["class_grams"] = self.class_grams
        metadata = {"clipping_norm": repr(self.clipping_norm), "positives": str(self.positives)}
        write_tensors(path, tensors, metadata, private=True)

    @classmethod
    def load(cls, path) -> "Statistics":
        """Read statistics that `save` wrote."""
        metadata = read_tensor_metadata(path)
        tensors = read_tensors(path)
        return cls(
            gram=tensors["gram"],
            targets=tensors["targets"],
            class_grams=tensors.get("class_grams"),
            clipping_norm=float(metadata["clipping_norm"]),
            positives=int(metadata["positives"]),
        )


def accumulate(
    batches: Iterable[tuple[np.ndarray, np.ndarray]],
    classes: int,
    clipping_norm: float,
    positives: int = 1,
    per_class: bool = False,
) -> Statistics:
    """One pass over (features (n, d), labels (n,) or (n, m)) batches.

    Products of blocks are float32, their sum is float64. The Gram is a symmetric rank-k update: half the work of
    a matrix product. Rows with a NaN or infinity contribute zero (a per-record rule).

    Raises:
        StudyError: no rows, or labels that `one_hot` refuses.
    """
    gram = targets = class_grams = None
    for features, labels in batches:
        for start in range(0, len(features), _BLOCK):
            x = clip_rows(features[start : start + _BLOCK], clipping_norm)
            y = one_hot(labels[start : start + _BLOCK], classes, positives)
            if gram is None:
                dim = x.shape[1]
                gram, targets = np.zeros((dim, dim)), np.zeros((classes, dim))
                class_grams = np.zeros((classes, dim, dim), np.float32) if per_class else None
            targets += y.T @ x
            if per_class:
                _add_class_grams(class_grams, gram, x, y)
            else:
                add_gram(gram, x)
    if gram is None:
        raise StudyError("there are no training rows to learn from")
    mirror(gram)
    for matrix in class_grams if per_class else ():
        mirror(matrix)
    return Statistics(gram.astype(np.float32), targets.astype(np.float32), class_grams, clipping_norm, positives)


def add_gram(total: np.ndarray, x: np.ndarray) -> None:
    """Add the upper triangle of x^T x; x is C-contiguous, so its transpose is what BLAS calls column-major."""
    total += ssyrk(1.0, np.ascontiguousarray(x).T, lower=1).T


def _add_class_grams(class_grams: np.ndarray, gram: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    single = (y.sum(1) == 1).all()
    for index in np.flatnonzero(y.any(0)):
        part = ssyrk(1.0, np.ascontiguousarray(x[y[:, index] > 0]).T, lower=1).T
        class_grams[index] += part
        if single:  # every record stands in one class: the Gram is the sum of the class Grams
            gram += part
    if not single:
        add_gram(gram, x)


def mirror(matrix: np.ndarray) -> None:
    """Copy the upper triangle to the lower, in place."""
    for row in range(1, len(matrix)):
        matrix[row, :row] = matrix[:row, row]
