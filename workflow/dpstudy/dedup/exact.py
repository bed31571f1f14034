"""Exact copies: equal decoded pixels, or equal grey squares where the sets differ in image size or colour."""

import hashlib

import numpy as np

from dpstudy.dedup.grey import grey_squares


def digests(images: np.ndarray) -> list[bytes]:
    """A digest of each image's shape and pixels; images is (n, H, W, C) uint8."""
    shape = np.array(images.shape[1:], np.int64).tobytes()
    return [hashlib.blake2b(shape + image.tobytes(), digest_size=16).digest() for image in images]


def exact_pairs(public: np.ndarray, private: np.ndarray, side: int) -> list[tuple[int, int]]:
    """The pairs (public row, private row) of exact copies, in order.

    Images of one shape are compared as they are, others as grey squares of `side`, rounded to whole levels.
    """
    if public.shape[1:] != private.shape[1:]:
        public, private = levels(public, side), levels(private, side)
    rows_by_digest: dict[bytes, list[int]] = {}
    for row, digest in enumerate(digests(private)):
        rows_by_digest.setdefault(digest, []).append(row)
    matches = [rows_by_digest.get(digest, ()) for digest in digests(public)]
    return [(first, second) for first, seconds in enumerate(matches) for second in seconds]


def levels(images: np.ndarray, side: int) -> np.ndarray:
    """(n, side, side, 1) uint8 grey squares of images (n, H, W, C) uint8, rounded to whole levels."""
    return np.rint(grey_squares(images, side)).astype(np.uint8)[..., None]
