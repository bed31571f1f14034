"""Near copies: images whose grey squares correlate, as they are, mirrored, or shifted by one pixel.

A 64-bit perceptual hash is too coarse for images of 8 x 8 pixels, where one class already looks much alike, so the
squares themselves are compared. Correlation ignores brightness and contrast. Under a shift only the overlap of the two
squares is compared, so that what came in at the border does not matter.
"""

from collections.abc import Iterator

import numpy as np

from dpstudy.dedup.grey import grey_squares

_CHUNK = 1024  # rows per side of one matrix product: its result stays in cache
_SLACK = 1e-3  # candidates this far below the threshold are scored again, exactly
_COARSE = 24  # directions that most of an image lies along
_AT_ONCE = 1 << 16  # candidates scored again in one go
_SHIFTS = [(down, right) for down in (0, -1, 1) for right in (0, -1, 1)]


def near_pairs(public: np.ndarray, private: np.ndarray, side: int, threshold: float) -> dict[tuple[int, int], float]:
    """(public row, private row) -> the highest correlation over variants, for pairs that reach `threshold`.

    Args:
        public, private: images (n, H, W, C) uint8.
        side: of the grey squares, in pixels.
        threshold: in (0, 1].

    A pair's score depends on its two images alone, to the last bit: the matrix product only finds candidates, since
    its rounding may depend on the other rows.
    """
    first, second = grey_squares(public, side), grey_squares(private, side)
    scores: dict[tuple[int, int], float] = {}
    for left, right in _variants(first, second):
        for rows, columns in _candidates(left, right, threshold - _SLACK):
            exact = np.einsum("ij,ij->i", left[rows], right[columns], dtype=np.float64)
            alike = exact >= threshold
            for row, column, score in zip(rows[alike].tolist(), columns[alike].tolist(), exact[alike], strict=True):
                scores[row, column] = max(float(score), scores.get((row, column), 0.0))
    return dict(sorted(scores.items()))


def _candidates(left: np.ndarray, right: np.ndarray, bound: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every pair of rows of (n, pixels) unit vectors whose product may reach `bound`, in portions (rows, columns).

    Along an orthonormal basis P, <u, v> <= <Pu, Pv> + |u - Pu| |v - Pv| (Cauchy and Schwarz): a product of short
    vectors that never misses a pair, and seldom asks for one in vain, since P holds most of the public images.
    """
    _, basis = np.linalg.eigh(left.T.astype(np.float64) @ left)
    basis = basis[:, -_COARSE:].astype(np.float32)
    short_left, short_right = _shorten(left, basis), _shorten(right, basis)
    for start in range(0, len(left), _CHUNK):
        for begin in range(0, len(right), _CHUNK):
            close = short_left[start : start + _CHUNK] @ short_right[begin : begin + _CHUNK].T >= bound
            rows, columns = np.nonzero(close)
            for place in range(0, len(rows), _AT_ONCE):
                part = slice(place, place + _AT_ONCE)
                yield rows[part] + start, columns[part] + begin


def _shorten(vectors: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """(n, directions + 1): the parts along the basis, and the norm of the rest."""
    along = vectors @ basis
    rest = np.maximum(0, np.einsum("ij,ij->i", vectors, vectors) - np.einsum("ij,ij->i", along, along))
    return np.column_stack([along, np.sqrt(rest)])


def _variants(first: np.ndarray, second: np.ndarray):
    """Pairs of (n, pixels) unit vectors whose products are the correlations under each variant."""
    yield _standardise(first[:, :, ::-1]), _standardise(second)
    for down, right in _SHIFTS:
        yield _standardise(_overlap(first, down, right)), _standardise(_overlap(second, -down, -right))


def _overlap(squares: np.ndarray, down: int, right: int) -> np.ndarray:
    side = squares.shape[1]
    return squares[:, max(down, 0) : side + min(down, 0), max(right, 0) : side + min(right, 0)]


def _standardise(squares: np.ndarray) -> np.ndarray:
    """Mean 0 and norm 1 for each square; a square of one grey level becomes 0 and correlates with nothing."""
    flat = np.ascontiguousarray(squares).reshape(len(squares), -1).astype(np.float64)
    flat -= flat.mean(axis=1, keepdims=True)
    norm = np.sqrt((flat**2).sum(axis=1, keepdims=True))
    return np.where(norm > 1e-3, flat / np.maximum(norm, 1e-3), 0).astype(np.float32)
