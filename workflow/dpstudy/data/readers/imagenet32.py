"""Downsampled ImageNet (16, 32 or 64 pixels per side): `train_data_batch_1.npz` to `_10.npz`, and `val_data.npz`.

Each file has `data`, (n, 3 S S) uint8, the red plane first, and `labels`, 1 to 1,000. Its `mean` is not used. One
file is held at a time. The validation images serve as the split test.
"""

from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.npy import read_npz
from dpstudy.data.reader import Declared, Numbered, Reader
from dpstudy.data.source import class_names, location, single_labels

READER = Declared(keys=("location", "classes"), shape=(32, 32, 3), numbered=True)

_CLASSES = 1000


def open(options: dict, data_root: Path) -> Reader:
    """Open the files in `location`.

    Options: `classes` (a list, or their number; 1,000 where absent).

    Raises:
        StudyError: a file is missing or damaged, or its arrays do not fit together.
    """
    folder = location(options, data_root)
    training = sorted(folder.glob("train_data_batch_*.npz"), key=lambda path: (len(path.name), path.name))
    if not training:
        raise StudyError(f"{folder / 'train_data_batch_1.npz'}: no such file")
    classes = class_names(options, [str(label) for label in range(_CLASSES)])
    return _Batches({"train": training, "test": [folder / "val_data.npz"]}, classes)


class _Batches(Numbered):
    def __init__(self, files: dict[str, list[Path]], classes: list[str]):
        labels = {pool: [_labels(path, classes) for path in paths] for pool, paths in files.items()}
        super().__init__(classes, {pool: np.concatenate(of_files) for pool, of_files in labels.items()})
        self._files = {pool: list(zip(paths, map(len, labels[pool]), strict=True)) for pool, paths in files.items()}
        self._held: tuple[Path, np.ndarray] | None = None

    def images(self, pool: str, indices: np.ndarray) -> np.ndarray | None:
        images, first = None, 0
        for path, rows in self._files[pool]:
            here = np.flatnonzero((indices >= first) & (indices < first + rows))
            if len(here):
                pixels = self._pixels(path, rows)
                if images is None:
                    images = np.empty((len(indices), *pixels.shape[1:]), np.uint8)
                images[here] = pixels[indices[here] - first]
            first += rows
        return images

    def _pixels(self, path: Path, rows: int) -> np.ndarray:
        """(n, S, S, 3) of one file."""
        if self._held is None or self._held[0] != path:
            data = read_npz(path, "data")
            side = round((data.shape[1] / 3) ** 0.5) if data.ndim == 2 else 0
            if data.dtype != np.uint8 or len(data) != rows or not side or data.shape[1] != 3 * side * side:
                raise StudyError(f"{path}: `data` is {data.dtype} of shape {data.shape}, not uint8 of ({rows}, 3 S S)")
            self._held = path, data.reshape(rows, 3, side, side).transpose(0, 2, 3, 1)
        return self._held[1]


def _labels(path: Path, classes: list[str]) -> np.ndarray:
    values = read_npz(path, "labels")
    return single_labels(
        values.astype(np.int64) - 1 if values.dtype.kind in "iu" else values, classes, f"{path} (less 1)"
    )
