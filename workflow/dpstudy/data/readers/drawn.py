"""The bases of readers of synthetic public images: nothing to download, nothing private."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.reader import Rows
from dpstudy.data.records import Records


class Synthetic(ABC):
    """`count` images in one pool, `all`, which `images` makes; image i is of class i modulo their number.

    Args:
        name: the reader's, for ids.
        image_shape: (H, W, C).
    """

    pools = ("all",)
    multi_label = False

    def __init__(self, name: str, classes: list[str], count: int, image_shape: tuple[int, int, int]):
        self._name, self.classes, self._count, self.image_shape = name, classes, count, image_shape

    def rows(self, pool: str) -> Rows:
        """The ids of `pool`, in order."""
        return Rows(self._ids(np.arange(self._count)))

    def read(self, pool: str, indices: np.ndarray) -> Records:
        """The images `indices` of `pool`: (n, H, W, C) uint8."""
        indices = np.asarray(indices, np.int64)
        return Records(self._ids(indices), self.images(indices), (indices % len(self.classes)).astype(np.int32))

    @abstractmethod
    def images(self, indices: np.ndarray) -> np.ndarray:
        """(n, H, W, C) uint8."""

    def _ids(self, indices: np.ndarray) -> np.ndarray:
        return np.array([f"{self._name}-{index:06d}" for index in indices], dtype=object)


class Drawn(Synthetic):
    """Images that are drawn one by one; every label is 0, or image i is of class i modulo `kinds`.

    Args:
        name: the reader's, for ids and messages.
        draw: (random generator, (H, W), channels) -> (H, W, channels) uint8; picture i draws from (seed, i) only.
            With kinds it is told the kind too.
        options: size and channels, count (10000), seed (0), and kinds, at least 2, or none.

    Raises:
        StudyError: an option is out of range.
    """

    def __init__(self, name: str, draw: Callable, options: dict):
        self._draw, self._seed, self._kinds = draw, options.get("seed", 0), options.get("kinds")
        classes = [f"kind-{kind:03d}" for kind in range(self._kinds)] if self._kinds else ["drawn"]
        size, channels = options["size"], options["channels"]
        if len(size) != 2 or min(size) < 8:
            raise StudyError(f"public data set: size is {size}; {name} needs [height, width] of at least 8 pixels each")
        super().__init__(name, classes, options.get("count", 10000), (int(size[0]), int(size[1]), channels))

    def images(self, indices: np.ndarray) -> np.ndarray:
        """See `Synthetic`."""
        images = np.empty((len(indices), *self.image_shape), np.uint8)
        for row, index in enumerate(indices.tolist()):
            random = np.random.default_rng([self._seed, index])
            kind = (index % self._kinds,) if self._kinds else ()
            images[row] = self._draw(random, self.image_shape[:2], self.image_shape[2], *kind)
        return images
