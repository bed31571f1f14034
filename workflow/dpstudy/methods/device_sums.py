"""The sums that least squares needs, with torch: on a GPU a pass takes little longer than reading the shards."""

import numpy as np
import torch

from dpstudy.core.arrays import Place
from dpstudy.methods.averaging import scaled
from dpstudy.methods.exact import grid_of
from dpstudy.methods.row_map import RowMap

_BLOCK = 65_536  # rows of one product


class DeviceSums:
    """Running sums over clipped rows on the device `where`: float32 products without TF32, float64 sums.

    With `exact`, all in float64.

    `sufficient_statistics.accumulate` says what they are. They equal its CPU sums, where these round up to rounding.
    """

    def __init__(
        self, dim: int, classes: int, clipping_norm: float, per_class: bool, where: Place, exact: bool = False
    ):
        self._map, self._where = RowMap(clip=clipping_norm, exact=exact), where
        self._dtype = "float64" if exact else "float32"
        self._gram = where.zeros(dim, dim, dtype="float64")
        self._targets = where.zeros(classes, dim, dtype="float64")
        self._class_grams = where.zeros(classes, dim, dim, dtype=self._dtype) if per_class else None
        self._grid = grid_of(clipping_norm) if exact else None

    def add(self, features: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Add (n, d) features with checked labels, (n,) indices or 0/1 (n, m), each record times its weight."""
        for start in range(0, len(features), _BLOCK):
            x, _ = self._map(self._where.array(np.ascontiguousarray(features[start : start + _BLOCK])))
            x = self._where.array(x, self._dtype)
            y = self._where.array(np.ascontiguousarray(labels[start : start + _BLOCK]))
            if y.ndim == 1:
                y = torch.nn.functional.one_hot(y.long(), len(self._targets))
            # a product, not index_add_: its order of summation on a GPU differs from run to run
            shares = None if weights is None else weights[start : start + _BLOCK]
            self._targets += y.to(x.dtype).T @ scaled(x, shares, self._grid)
            x = scaled(x, None if shares is None else shares**0.5, self._grid)
            self._gram += x.T @ x
            if self._class_grams is not None:
                for index in range(len(self._targets)):
                    rows = x[y[:, index] > 0]
                    self._class_grams[index].addmm_(rows.T, rows)

    def totals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """gram, targets and class_grams, as `Statistics` holds them."""
        class_grams = None if self._class_grams is None else self._class_grams.cpu().numpy()
        gram, targets = (self._where.array(sums, self._dtype).cpu().numpy() for sums in (self._gram, self._targets))
        return gram, targets, class_grams
