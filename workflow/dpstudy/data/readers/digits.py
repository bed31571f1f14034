"""scikit-learn's handwritten digits: 1,797 images of 8x8 grey levels, embedded in that library.

Its grey levels 0..16 (Alpaydin and Kaynak, 1998) become uint8 by round(value * 255 / 16).
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dpstudy.data.reader import Declared, Reader, Rows
from dpstudy.data.records import Records
from dpstudy.data.source import class_names, single_labels

READER = Declared(shape=(8, 8, 1), numbered=True)


def open(options: dict, data_root: Path) -> Reader:
    """Open the embedded digits; takes no location."""
    table = _table()
    images, labels = table[:, :64].reshape(-1, 8, 8), table[:, 64].astype(np.int64)
    return _Digits(images, labels, class_names(options, [str(digit) for digit in range(10)]))


def _table() -> np.ndarray:
    """(n, 65) grey levels and digits, as `sklearn.datasets.load_digits` reads them: its import takes half a second."""
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
    return np.loadtxt(Path(package.origin).with_name("datasets") / "data/digits.csv.gz", delimiter=",")


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
