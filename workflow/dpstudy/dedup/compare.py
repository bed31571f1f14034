"""Matches of public with private images: candidates by hash and embedding, decided by their correlation once aligned.

A public image is a copy of a private one if, aligned, they correlate by `threshold`, or if they correlate by `possible`
and stand out: if what they lack to 1 is at most `margin` of what the private one lacks to the fourth nearest of a fixed
sample of public images. Pen strokes resemble each other much more than photographs do; the second rule lets photographs
match through compression and cropping at correlations at which strokes are merely alike.

Each decision depends on one private image and on fixed public ones alone, but for the rounding of products of matrices,
so that dropping a private record is a rule about that record.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from dpstudy.dedup import align
from dpstudy.dedup.basis import Basis
from dpstudy.dedup.candidates import Candidates, Index, among_best, form_of
from dpstudy.dedup.describe import Description
from dpstudy.dedup.rule import Rule
from dpstudy.dedup.thumbnails import grey

_LOOKED_AT = 8  # candidates of a private image that are aligned finely
_REFERENCE = 4  # which of them, in the sample, an image that is no copy is measured by
_COARSE = 0.7  # correlation below which a candidate is not aligned finely
_PAIRS, _FINE_PAIRS = 4096, 1024  # at once: memory, not results, depends on them


@dataclass(frozen=True)
class Matches:
    """Pairs of matching rows, sorted by the public row, and their correlation; 1 where they are exact copies."""

    public: np.ndarray
    private: np.ndarray
    score: np.ndarray
    exact: np.ndarray


def compare(public: Description, private: Description, basis: Basis, rule: Rule) -> Matches:
    """The public rows that are copies of private images, with the private rows.

    Args:
        public: described as public, by the embedding that the basis was fitted to.
        private: described as private, by the same.
    """
    return judge(public, private, Index(public, basis).near(private), equal(public, private), basis, rule)


def judge(
    public: Description,
    private: Description,
    candidates: Candidates,
    same: list[tuple[int, int]],
    basis: Basis,
    rule: Rule,
) -> Matches:
    """The candidates that are copies.

    Args:
        candidates: pairs of rows that may be.
        same: pairs of rows that are, exactly (`equal`).
    """
    equals = set(same)
    rows, columns, scores = _aligned(public, private, candidates, _COARSE, rule.possible)
    unsure = np.unique(columns[scores < rule.threshold])
    lacking = np.zeros(len(private))
    lacking[unsure] = 1 - _reference(private.take(unsure), basis)
    copies = (scores >= rule.threshold) | (1 - scores <= rule.margin * lacking[columns])
    near = {(int(a), int(b)): float(s) for a, b, s in zip(rows[copies], columns[copies], scores[copies], strict=True)}
    pairs = sorted(equals | near.keys())
    return Matches(
        np.array([pair[0] for pair in pairs], np.int64),
        np.array([pair[1] for pair in pairs], np.int64),
        np.array([1.0 if pair in equals else min(near[pair], 1.0) for pair in pairs]),
        np.array([pair in equals for pair in pairs], bool),
    )


def equal(public: Description, private: Description) -> list[tuple[int, int]]:
    """Pairs of rows with equal pixels, or equal grey squares where the sets differ in image size or colour."""
    kind = "exact" if public.shape == private.shape else "levels"
    rows: dict[bytes, list[int]] = {}
    for row, digest in enumerate(getattr(private, kind)):
        rows.setdefault(digest.tobytes(), []).append(row)
    digests = enumerate(getattr(public, kind))
    return [(first, second) for first, digest in digests for second in rows.get(digest.tobytes(), ())]


class _Sets:
    """Two sets of pictures, prepared for alignment."""

    def __init__(self, public: Description, private: Description):
        in_grey = form_of(public, private) == "grey"
        self._sides = [grey(each.thumbnails) if in_grey else each.thumbnails for each in (public, private)]

    def coarse(self, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, torch.Tensor]:
        """Of pairs of rows, the coarse correlations and the two best starts."""
        asked, place = np.unique(columns, return_inverse=True)
        parts = range(0, max(1, len(asked)), _PAIRS)
        templates = torch.cat([align.prepare_private(_planes(self._sides[1][asked[at : at + _PAIRS]])) for at in parts])
        scores, starts = np.empty(len(rows), np.float32), torch.empty(len(rows), 2, dtype=torch.long)
        order = np.argsort(rows, kind="stable")  # a public picture, whose windows are large, is prepared once or twice
        for at in range(0, len(rows), _PAIRS):
            few = order[at : at + _PAIRS]
            used, which = np.unique(rows[few], return_inverse=True)
            windows = align.prepare_public(_planes(self._sides[0][used]))
            best, start = align.coarse(windows[which], templates[place[few]])
            scores[few], starts[torch.from_numpy(few)] = best[:, 0].numpy(), start
        return scores, starts

    def fine(self, rows: np.ndarray, columns: np.ndarray, starts: torch.Tensor, least: float) -> np.ndarray:
        """Their aligned correlations; -1 where these would not reach `least`."""
        scores = [np.empty(0, np.float32)]
        for at in range(0, len(rows), _FINE_PAIRS):
            few = slice(at, at + _FINE_PAIRS)
            first, second = (
                _planes(side[which[few]]) for side, which in zip(self._sides, (rows, columns), strict=True)
            )
            scores.append(align.fine(first, second, starts[few], least).numpy())
        return np.concatenate(scores)


@torch.inference_mode()
def _aligned(
    public: Description, private: Description, candidates: Candidates, coarse: float, least: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of rows whose aligned correlation reaches `least`: public rows, private rows, correlations.

    Args:
        coarse: correlation below which a candidate is not aligned finely.
    """
    sets, rows, columns = _Sets(public, private), candidates.public, candidates.private
    scores, starts = sets.coarse(rows, columns)
    kept = among_best(columns, scores, _LOOKED_AT) & (scores >= coarse)
    rows, columns = rows[kept], columns[kept]
    scores = sets.fine(rows, columns, starts[torch.from_numpy(kept)], least)
    enough = scores >= least
    return rows[enough], columns[enough], scores[enough]


def _reference(private: Description, basis: Basis) -> np.ndarray:
    """(n,) how near the fourth nearest image of the public sample comes to each private one."""
    if not len(private):
        return np.empty(0)
    near = Index(basis.sample, basis).near(private)
    _, columns, scores = _aligned(basis.sample, private, near, -math.inf, -math.inf)
    reference = np.zeros(len(private))
    for column in range(len(private)):
        descending = np.sort(scores[columns == column])[::-1]
        reference[column] = descending[_REFERENCE - 1] if len(descending) >= _REFERENCE else 0.0
    return reference


def _planes(pictures: np.ndarray) -> torch.Tensor:
    """(n, C, S, S) in [0, 1]."""
    return torch.from_numpy(np.ascontiguousarray(pictures.transpose(0, 3, 1, 2))).float() / 255
