"""The base of readers of synthetic public images: nothing to download, nothing private."""

from collections.abc import Callable

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.reader import Rows
from dpstudy.data.records import Records


class Drawn:
    """`count` synthetic images in one pool, `all`; every label is 0, or image i is of class i modulo `kinds`.

    Args:
        name: the reader's, for ids and messages.
        draw: (random generator, (H, W), channels) -> (H, W, channels) uint8; picture i draws from (seed, i) only.
            With kinds it is told the kind too.
        options: size and channels, count (10000), seed (0), and kinds, at least 2, or none.

    Raises:
        StudyError: an option is out of range.
    """

    pools = ("all",)
    multi_label = False

    def __init__(self, name: str, draw: Callable, options: dict):
        self._kinds = options.get("kinds")
        if self._kinds is not None and self._kinds < 2:
            raise StudyError(f"public data set: kinds is {self._kinds}; {name} needs at least 2")
        self.classes = [f"kind-{kind:03d}" for kind in range(self._kinds)] if self._kinds else ["drawn"]
        self._name, self._draw = name, draw
        self._count, self._seed = options.get("count", 10000), options.get("seed", 0)
        size, channels = options["size"], options["channels"]
        if len(size) != 2 or min(size) < 8:
            raise StudyError(f"public data set: size is {size}; {name} needs [height, width] of at least 8 pixels each")
        self.image_shape = (int(size[0]), int(size[1]), channels)

    def rows(self, pool: str) -> Rows:
        """The ids of `pool`, in order."""
        return Rows(self._ids(np.arange(self._count)))

    def read(self, pool: str, indices: np.ndarray) -> Records:
        """The images `indices` of `pool`: (n, H, W, C) uint8."""
        images = np.empty((len(indices), *self.image_shape), np.uint8)
        for row, index in enumerate(indices):
            random = np.random.default_rng([self._seed, int(index)])
            kind = (int(index) % self._kinds,) if self._kinds else ()
            images[row] = self._draw(random, self.image_shape[:2], self.image_shape[2], *kind)
        labels = np.asarray(indices) % (self._kinds or 1)
        return Records(ids=self._ids(indices), images=images, labels=labels.astype(np.int32))

    def _ids(self, indices: np.ndarray) -> np.ndarray:
        return np.array([f"{self._name}-{index:06d}" for index in indices], dtype=object)
