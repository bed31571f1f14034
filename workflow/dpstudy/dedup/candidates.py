"""Candidate pairs of copies: each private image's nearest public images by perceptual hash and by embedding (faiss)."""

from dataclasses import dataclass

import numpy as np

from dpstudy.data.records import Columns
from dpstudy.dedup.basis import Basis
from dpstudy.dedup.describe import Description

CANDIDATES = 48  # public images that are laid on a private one
NEAREST = 8  # of each of its variants
_HASHED = 4
_BITS = 14  # of 64 that may differ
_ROWS = 8192  # private images at once


@dataclass(frozen=True)
class Candidates(Columns):
    """Candidate pairs (public row, private row) of copies.

    Attributes:
        public, private: (pairs,) int64 rows.
        nearness: (pairs,) float32, at most 1: cosine of the embeddings, or 1 less the part of the bits that may differ.
    """

    public: np.ndarray
    private: np.ndarray
    nearness: np.ndarray


class Index:
    """An exact nearest-neighbour index of public images; a query's results do not depend on other queries."""

    def __init__(self, public: Description, basis: Basis):
        import faiss

        faiss.omp_set_num_threads(1)  # its threads and torch's wait for each other
        self._public, self._basis, self._faiss = public, basis, faiss
        self._hashes = faiss.IndexBinaryFlat(64)
        self._hashes.add(np.ascontiguousarray(public.hashes[:, 0]))
        self._vectors: dict = {}

    def near(self, private: Description) -> "Candidates":
        """The candidate pairs: up to CANDIDATES public images for each private one, the nearest first."""
        form = form_of(self._public, private)
        vectors = self._vectors_of(form)
        blocks = []
        for start in range(0, len(private), _ROWS):
            part = np.arange(start, min(start + _ROWS, len(private)))
            for variant in getattr(private, form)[part].swapaxes(0, 1):
                near, rows = vectors.search(self._basis.vectors(form, variant), min(NEAREST, len(self._public)))
                blocks.append(_flat(rows, part, near, rows >= 0))
            for mirrored in private.hashes[part].swapaxes(0, 1):
                bits, rows = self._hashes.search(np.ascontiguousarray(mirrored), min(_HASHED, len(self._public)))
                blocks.append(_flat(rows, part, 1 - bits / _BITS, (rows >= 0) & (bits <= _BITS)))
        return best(Candidates(*(np.concatenate(column) for column in zip(*blocks, strict=True))))

    def _vectors_of(self, form: str):
        if form not in self._vectors:
            vectors = self._basis.vectors(form, getattr(self._public, form)[:, 0])
            self._vectors[form] = self._faiss.IndexFlatIP(vectors.shape[1])
            self._vectors[form].add(vectors)
        return self._vectors[form]


def form_of(public: Description, private: Description) -> str:
    """The form in which two sets are compared: "grey" or "colour"."""
    return "grey" if public.colour is None or private.colour is None else "colour"


def best(candidates: Candidates) -> Candidates:
    """Unique pairs, at most the CANDIDATES nearest for each private image, sorted by the private row."""
    order = np.lexsort((-candidates.nearness, candidates.public, candidates.private))
    pairs = np.stack([candidates.private[order], candidates.public[order]])
    order = order[np.concatenate([[True], (pairs[:, 1:] != pairs[:, :-1]).any(0)])] if len(order) else order
    unique = candidates.take(order)
    return unique.take(np.flatnonzero(among_best(unique.private, unique.nearness, CANDIDATES)))


def among_best(groups: np.ndarray, scores: np.ndarray, count: int) -> np.ndarray:
    """Whether each score is among the `count` highest of its group; `groups` is sorted."""
    order = np.lexsort((-scores, groups))
    first = np.searchsorted(groups[order], groups[order])  # where each group begins
    kept = np.zeros(len(groups), bool)
    kept[order] = np.arange(len(groups)) - first < count
    return kept


def _flat(rows: np.ndarray, own: np.ndarray, near: np.ndarray, taken: np.ndarray) -> tuple[np.ndarray, ...]:
    return rows[taken].astype(np.int64), np.repeat(own, rows.shape[1])[taken.ravel()], near[taken].astype(np.float32)
