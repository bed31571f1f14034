"""Images and labels in numpy arrays.

`{pool}_images.npy` holds (n, H, W, C) or (n, H, W) uint8, `{pool}_labels.npy` (n,) class indices. The pools are train
and test, or all. (n, C, H, W), with 1 or 3 channels, is recognised by its shape.

Images are read from disk as they are asked for. Pickled arrays are refused.
"""

from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.npy import map_npy, read_npy
from dpstudy.data.reader import Declared, Numbered, Reader
from dpstudy.data.records import Records
from dpstudy.data.source import class_names, location, single_labels

READER = Declared(keys=("location", "classes"), own=True, numbered=True)

_CHANNELS = (1, 3)


def open(options: dict, data_root: Path) -> Reader:
    """Open the arrays in `location`.

    Options: `classes` (a list, or their number; default: the lines of classes.txt).

    Raises:
        StudyError: a file is missing, damaged, pickled, or its array has another shape or type.
    """
    folder = location(options, data_root)
    classes = class_names(options, file=folder / "classes.txt")
    pools = ("all",) if (folder / "all_labels.npy").exists() else ("train", "test")
    return _Arrays(folder, pools, classes)


class _Arrays(Numbered):
    def __init__(self, folder: Path, pools: tuple[str, ...], classes: list[str]):
        self._files, labels = {pool: folder / f"{pool}_images.npy" for pool in pools}, {}
        for pool in pools:
            file = folder / f"{pool}_labels.npy"
            labels[pool] = single_labels(read_npy(file), classes, str(file))
            images = len(_mapped(self._files[pool]))
            if images != len(labels[pool]):
                raise StudyError(f"{file}: {len(labels[pool])} labels for {images} images")
        super().__init__(classes, labels)

    def images(self, pool: str, indices: np.ndarray) -> np.ndarray:
        return np.array(_mapped(self._files[pool])[indices])  # mapped anew: a map holds on to all that was read of it

    def known(self, pool: str) -> Records:
        """What the arrays of labels say of each row."""
        return Records(self.rows(pool).ids, None, self._labels[pool])


def _mapped(path: Path) -> np.ndarray:
    """The array of a .npy file, (n, H, W, C), which stays on disk.

    Raises:
        StudyError: it is none, or may be (n, C, H, W) with other than 1 or 3 channels.
    """
    images = map_npy(path)
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or not images.size:
        scale = "; bring them to 0 to 255, rounded" if images.dtype.kind in "fui" and images.dtype != np.uint8 else ""
        raise StudyError(
            f"{path}: images must be (n, H, W, C) or (n, H, W) uint8, not {images.shape} {images.dtype}{scale}"
        )
    if images.ndim == 3:
        return images[..., None]
    first, last = images.shape[1], images.shape[3]
    if last in _CHANNELS:
        return images
    if first in _CHANNELS:
        return images.transpose(0, 2, 3, 1)
    if first < last:
        raise StudyError(
            f"{path}: images of shape {images.shape} look like (n, C, H, W) with {first} channels; save them as "
            "(n, H, W, C), `images.transpose(0, 2, 3, 1)`"
        )
    return images
