"""scikit-learn's handwritten digits: 1,797 images of 8x8 grey levels, embedded in that library.

Its grey levels 0..16 (Alpaydin and Kaynak, 1998) become uint8 by round(value * 255 / 16).
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dpstudy.data.reader import Declared, Numbered, Reader, Rows
from dpstudy.data.source import class_names, single_labels

READER = Declared(shape=(8, 8, 1), numbered=True)


def open(options: dict, data_root: Path) -> Reader:
    """Open the embedded digits; takes no location."""
    table = _table()
    classes = class_names(options, [str(digit) for digit in range(10)])
    labels = single_labels(table[:, 64].astype(np.int64), classes, "scikit-learn's digits")
    return _Digits(classes, labels, np.rint(table[:, :64].reshape(-1, 8, 8, 1) * 255 / 16).astype(np.uint8))


def _table() -> np.ndarray:
    """(n, 65) grey levels and digits, as `sklearn.datasets.load_digits` reads them: its import takes half a second."""
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
    return np.loadtxt(Path(package.origin).with_name("datasets") / "data/digits.csv.gz", delimiter=",")


class _Digits(Numbered):
    def __init__(self, classes: list[str], labels: np.ndarray, images: np.ndarray):
        super().__init__(classes, {"all": labels})
        self._images = images

    def rows(self, pool: str) -> Rows:
        return Rows.numbered("digits", len(self._labels[pool]))

    def images(self, pool: str, indices: np.ndarray) -> np.ndarray:
        return self._images[indices]
