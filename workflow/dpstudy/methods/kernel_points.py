"""Random Fourier features of private records, on a grid for exact sums: see exact.py, and models/random_features.py."""

from __future__ import annotations

import math

import numpy as np

from dpstudy.core.arrays import Array, place_of, scores_of
from dpstudy.methods import exact
from dpstudy.methods.bounds import SMALLEST_NORM
from dpstudy.methods.row_map import RowMap
from dpstudy.models.random_features import FeatureMap, Landmarks

_POINT_BITS = 20  # of points of norm 1
PSI_GRID = 2.0**-28  # of psi: sums of CAPACITY numbers of at most 1 have 51 bits


def exact_map(mapping: FeatureMap, features: Array) -> Array:
    """(n, 2D) float64 psi of (n, d) features, of norm at most 1 and on a grid; each row depends on its record alone.

    It is what `mapping` computes, up to rounding.
    """
    where = place_of(features)
    xp, count = where.xp, len(mapping.frequencies)
    with np.errstate(all="ignore"):  # from records that are not finite, which no sum counts
        points = exact.truncated(_points(mapping, features), 2.0**-_POINT_BITS)
    frequencies = exact.on_grid(where.array(mapping.frequencies), _POINT_BITS)
    angles = points @ frequencies.T
    scale = where.array(np.full(len(points), exact.BELOW / math.sqrt(count)))[:, None]
    if mapping.landmarks is not None:
        widening = _widening(mapping.landmarks, points)
        scale = scale * xp.exp(-0.5 * widening[:, None] ** 2 * (frequencies**2).sum(1))
    return exact.truncated(xp.concatenate([xp.cos(angles) * scale, xp.sin(angles) * scale], 1), PSI_GRID)


def _points(mapping: FeatureMap, features: Array) -> Array:
    """(n, p) points of norm 1, from (n, d) features."""
    where = place_of(features)
    xp, model = where.xp, mapping.projection
    if model is None:
        y, unit, norm = exact.whole_rows(where.array(features, "float64"))
        return y * xp.where(norm < SMALLEST_NORM, 0.0, exact.BELOW * unit / norm)[:, None]
    rule = RowMap(unit_first=model.unit, center=model.center, scale=model.scale, unit=model.unit, exact=True)
    weights = exact.on_grid(where.array(model.weights))
    scores = scores_of(weights, where.array(rule(features)[0], "float64"))
    scores += where.array(model.bias, "float64")[:, None]
    if mapping.link == "softmax":
        return exact.softmax(scores).T ** 0.5
    return (xp.concatenate([exact.sigmoid(scores), exact.sigmoid(-scores)]) / len(scores)).T ** 0.5


def _widening(marks: Landmarks, points: Array) -> Array:
    """(n,) additional bandwidths h' of points on their grid, as `Landmarks.widening` defines them."""
    where = place_of(points)
    xp = where.xp
    known = exact.truncated(where.array(marks.points, "float64"), 2.0**-_POINT_BITS)
    squares = (points**2).sum(1)[:, None] + (known**2).sum(1) - 2 * (points @ known.T)  # exact
    nearest = np.sort(squares, 1) if where.xp is np else xp.sort(squares, 1).values
    distances = (nearest[:, : min(marks.neighbours, len(known))] ** 0.5).mean(1)
    return xp.where(distances > marks.threshold, marks.extra * distances / marks.threshold, 0.0)
