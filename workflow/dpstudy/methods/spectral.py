"""Solving linear systems with a noisy, perhaps indefinite Gram matrix."""

from __future__ import annotations

import copy

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, eigh_tridiagonal, lu_factor, lu_solve
from scipy.linalg.lapack import dormqr, dsytrd

from dpstudy.core.arrays import Array, place_of
from dpstudy.core.errors import StudyError

_BLOCK = 64  # columns that LAPACK works on at once


def solve_floored(matrix: np.ndarray, ridge: float, right: np.ndarray) -> np.ndarray:
    """Floor the eigenvalues of symmetric (d, d) `matrix` at zero, add `ridge`, solve for each row of (m, d) `right`.

    >>> solve_floored(np.diag([3.0, -2.0]), 1.0, np.array([[4.0, 2.0]]))
    array([[1., 2.]], dtype=float32)

    All of it is post-processing of noisy releases, hence free. float64: at d = 3,969 a float32 eigendecomposition
    returned NaN.

    Raises:
        ValueError: `ridge` is not positive.
    """
    if not ridge > 0:
        raise ValueError(f"ridge must be positive, got {ridge}")
    if _positive_definite(matrix):  # nothing to floor: a factorisation is ten times cheaper
        return solve_ridge(matrix, ridge, right)
    # Q^T matrix Q is tridiagonal. Its eigenvectors are not carried back by Q, as eigh does: only `right` is. That
    # takes half the time.
    system = np.array(matrix, dtype=np.float64, order="F")
    reflectors, diagonal, beside, scales, _ = dsytrd(system, lower=1, lwork=_BLOCK * len(system), overwrite_a=1)
    reflectors = np.asfortranarray(reflectors[1:, :-1])
    values, vectors = eigh_tridiagonal(diagonal, beside, check_finite=False, lapack_driver="stevd")

    def turned(columns: np.ndarray, transposed: str) -> np.ndarray:  # by Q or Q^T, which leave the first row alone
        if len(columns) > 1:
            columns[1:] = dormqr("L", transposed, reflectors, scales, columns[1:], _BLOCK * columns.shape[1])[0]
        return columns

    inverse = 1.0 / (np.maximum(values, 0.0) + ridge)
    columns = vectors.T @ turned(right.astype(np.float64).T.copy(), "T")
    return turned(vectors @ (inverse[:, None] * columns), "N").T.astype(np.float32, order="C")


def _positive_definite(matrix: np.ndarray) -> bool:
    try:
        cho_factor(_ridged(matrix, 0.0), lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


class Preconditioner:
    """g -> g (M + ridge I)^-1 for the rows of many (m, d) gradients g, from one decomposition of the symmetric M.

    With `floor`, negative eigenvalues of M are raised to zero first.

    Raises:
        ValueError: `ridge` is not positive.
        StudyError: the system is singular.
    """

    def __init__(self, matrix: np.ndarray, ridge: float, floor: bool):
        if not ridge > 0:
            raise ValueError(f"ridge must be positive, got {ridge}")
        values, vectors = eigh(matrix.astype(np.float64), overwrite_a=True, check_finite=False, driver="evd")
        self._values = np.maximum(values, 0.0) if floor else values
        self._vectors: Array = vectors.astype(np.float32)
        self._ridge(ridge)

    def _ridge(self, ridge: float) -> None:
        values = self._values + ridge
        if not values.all():
            raise StudyError("the noisy system is singular: use a larger ridge, or floor: true")
        self._inverse: Array = (1 / values).astype(np.float32)

    def ridged(self, ridge: float) -> Preconditioner:
        """The preconditioner with another ridge."""
        other = copy.copy(self)
        other._ridge(ridge)
        return other

    def __call__(self, gradients: Array) -> Array:
        """(m, d) preconditioned gradients, on the device of the gradients."""
        where = place_of(gradients)
        if place_of(self._vectors) != where:
            self._vectors, self._inverse = where.array(self._vectors), where.array(self._inverse)
        return ((gradients @ self._vectors) * self._inverse) @ self._vectors.T


def solve_ridge(matrix: np.ndarray, ridge: float, right: np.ndarray) -> np.ndarray:
    """Solve (matrix + ridge I) w = r for each row r of (m, d) `right`, as mehta2023's Algorithm 3, line 6, prints it.

    By Cholesky where the system is positive definite, by pivoted LU where noise made it indefinite.

    Raises:
        StudyError: the system is singular.
    """
    try:
        factor = cho_factor(_ridged(matrix, ridge), lower=True, overwrite_a=True, check_finite=False)
        return _finite_rows(cho_solve(factor, right.astype(np.float64).T, check_finite=False))
    except LinAlgError:
        return solve_square(matrix, ridge, right)


def solve_square(matrix: np.ndarray, ridge: float, right: np.ndarray) -> np.ndarray:
    """As `solve_ridge`, for a (d, d) `matrix` that need not be symmetric.

    Raises:
        StudyError: the system is singular.
    """
    factor = lu_factor(_ridged(matrix, ridge), overwrite_a=True, check_finite=False)
    return _finite_rows(lu_solve(factor, right.astype(np.float64).T, check_finite=False))


def _finite_rows(solution: np.ndarray) -> np.ndarray:
    if not np.isfinite(solution).all():
        raise StudyError("the noisy system is singular: use a larger ridge, or floor: true")
    return solution.T.astype(np.float32)


def _ridged(matrix: np.ndarray, ridge: float) -> np.ndarray:
    """matrix + ridge I in float64, column-major as LAPACK needs it."""
    system = np.array(matrix, dtype=np.float64, order="F")
    system[np.diag_indices_from(system)] += ridge
    return system
