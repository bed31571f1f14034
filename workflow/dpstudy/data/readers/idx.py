"""The IDX format of MNIST, Fashion-MNIST and EMNIST: four files with the standard names, plain or .gz.

A name may have a dot before idx3, and a file may lie in a folder of its own name, as archives unpack it.

Header: two zero bytes, a type (8 = unsigned byte), the number of dimensions, then each dimension as a big-endian
32-bit integer. The files are taken from `location`; `download` names where missing ones come from.
"""

import struct
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion
from dpstudy.data.download import fetch
from dpstudy.data.reader import Declared, Reader, Rows
from dpstudy.data.records import Records
from dpstudy.data.source import class_names, location, read_bytes, single_labels

READER = Declared(keys=("location", "classes", "download", "label_offset"), shape=(None, None, 1), numbered=True)

_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_ALTERNATIVE = {"t10k-images-idx3-ubyte": "test-images-idx3-ubyte", "t10k-labels-idx1-ubyte": "test-labels-idx1-ubyte"}
_UNSIGNED_BYTE = 8
_TRAILING = 1000  # bytes too many that are counted exactly


def open(options: dict, data_root: Path) -> Reader:
    """Open the four files.

    Options: `location`; `download` (file name -> {url, sha256}); `label_offset`, the label of the first class (1 for
    EMNIST letters); `classes` (default: the digits 0 to 9).

    Raises:
        StudyError: a file is missing, or its header is not that of the images or labels it is named for.
    """
    if options.get("download"):
        fetch(Path(data_root) / str(options.get("location", "")), options["download"])
    folder = location(options, data_root)
    classes = class_names(options, [str(digit) for digit in range(10)])
    return _Idx(folder, classes, int(options.get("label_offset", 0)))


class _Idx:
    pools = ("train", "test")
    multi_label = False

    def __init__(self, folder: Path, classes: list[str], label_offset: int):
        self.classes = classes
        self._offset = label_offset
        self._paths = {pool: tuple(_find(folder, name) for name in names) for pool, names in _FILES.items()}
        self._counts = {}
        for pool, (images, labels) in self._paths.items():
            image_count, label_count = _shape(images, 3)[0], _shape(labels, 1)[0]
            if image_count != label_count:
                raise StudyError(f"{labels}: {label_count} labels for the {image_count} images of {images.name}")
            _array(labels, 1)  # before rows are named: a header may claim four thousand million of them
            self._counts[pool] = image_count

    def rows(self, pool: str) -> Rows:
        return Rows.numbered(pool, self._counts[pool])

    def read(self, pool: str, indices: np.ndarray) -> Records:
        images, labels = self._paths[pool]
        raw = _array(labels, 1).astype(np.int32)
        checked = single_labels(raw - self._offset, self.classes, f"{labels} (less label_offset {self._offset})")
        return Records(self.rows(pool).ids[indices], _array(images, 3)[indices][..., np.newaxis], checked[indices])


def image_shape(folder: Path, pool: str) -> tuple[int, ...]:
    """(images, height, width) of a pool, from the header of its file.

    Raises:
        StudyError: as of `open`.
    """
    return _shape(_find(folder, _FILES[pool][0]), 3)


def _find(folder: Path, name: str) -> Path:
    names = [name, _ALTERNATIVE.get(name, name)]
    candidates = [
        f"{each}{end}" for each in (*names, *(each.replace("-idx", ".idx") for each in names)) for end in ("", ".gz")
    ]
    for place in (folder / each for each in (*candidates, *(f"{each}/{each}" for each in candidates))):
        if place.is_file():
            return place
    kind = "images" if "images" in name else "labels"
    if near := suggestion(name, (path.name for path in folder.iterdir() if kind in path.name)):
        near += "; rename it"
    elif deeper := next(folder.glob(f"*/raw/{name}*"), None):  # as torchvision has them
        near = f"; let `location` end in {deeper.parent.relative_to(folder)}"
    raise StudyError(f"{folder / name}: no such file, neither plain nor with .gz{near}")


def _shape(path: Path, dimensions: int) -> tuple[int, ...]:
    size = 4 + 4 * dimensions
    header = read_bytes(path, size)
    if len(header) < size:
        raise StudyError(f"{path}: truncated: {len(header)} bytes, shorter than the {size} of its header")
    if header[:4] != bytes([0, 0, _UNSIGNED_BYTE, dimensions]):
        raise StudyError(
            f"{path}: its first bytes are {header[:4].hex(' ')}, not"
            f" {bytes([0, 0, _UNSIGNED_BYTE, dimensions]).hex(' ')} (IDX, unsigned bytes, {dimensions} dimensions)"
        )
    shape = struct.unpack(f">{dimensions}I", header[4:])
    if 0 in shape:
        raise StudyError(f"{path}: its header says {shape}: no rows or no pixels")
    return shape


def _array(path: Path, dimensions: int) -> np.ndarray:
    shape = _shape(path, dimensions)
    expected = 4 + 4 * dimensions + int(np.prod(shape, dtype=object))
    content = read_bytes(path, expected + _TRAILING)  # a limit: a few compressed bytes may expand to any size
    if len(content) < expected:
        row_bytes = int(np.prod(shape[1:], dtype=object))
        row = (len(content) - 4 - 4 * dimensions) // row_bytes
        raise StudyError(
            f"{path}: truncated in row {row}: {len(content)} bytes, but its header {shape} needs {expected}"
        )
    if len(content) > expected:
        more = len(content) - expected
        surplus = f"{more}" if more < _TRAILING else f"{more} or more"
        raise StudyError(f"{path}: {surplus} trailing bytes after the {expected} of its header {shape}")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
