"""scikit-learn's handwritten digits: 1,797 images of 8x8 grey levels, embedded in that library.

Its grey levels 0..16 (Alpaydin and Kaynak, 1998) become uint8 by round(value * 255 / 16).
"""

from pathlib import Path

import numpy as np

from dpstudy.data.reader import Reader, Rows
from dpstudy.data.records import Records
from dpstudy.data.source import class_names, single_labels


def open(options: dict, data_root: Path) -> Reader:
    """Open the embedded digits; takes no location."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return _Digits(bunch.images, bunch.target, class_names(options, [str(digit) for digit in range(10)]))


class _Digits:
    pools = ("all",)
    multi_label = False

    def __init__(self, images, labels, classes):
        self.classes = classes
        self._images = np.rint(images * 255 / 16).astype(np.uint8)[..., np.newaxis]
        self._labels = single_labels(labels, classes, "scikit-learn's digits")

    def rows(self, pool: str) -> Rows:
        return Rows.numbered("digits", len(self._labels))

    def read(self, pool: str, indices: np.ndarray) -> Records:
        return Records(self.rows(pool).ids[indices], self._images[indices], self._labels[indices])
