"""Lossless image mosaics (WebP or PNG): `{pool}_00.webp`, ... with 10 tiles per row, and `{pool}_labels.npy`."""

from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.npy import read_npy
from dpstudy.data.images import Mosaic, pair
from dpstudy.data.reader import Declared, Numbered, Reader
from dpstudy.data.source import class_names, location, single_labels

READER = Declared(keys=("location", "classes", "tile", "max_pixels"), numbered=True)

_SUFFIXES = (".webp", ".png")


def open(options: dict, data_root: Path) -> Reader:
    """Open the mosaics in `location`: pools train and test where both have labels, else the pool all.

    Options: `tile` ([H, W], default [32, 32]), `classes` (default: the lines of classes.txt), `max_pixels`.

    Raises:
        StudyError: mosaics or labels are missing or damaged, or their numbers of rows differ.
    """
    folder = location(options, data_root)
    classes = class_names(options, file=folder / "classes.txt")
    pools = ("all",) if (folder / "all_labels.npy").exists() else ("train", "test")
    return _Mosaics(folder, pools, pair(options, "tile") or (32, 32), classes, options.get("max_pixels"))


class _Mosaics(Numbered):
    def __init__(
        self, folder: Path, pools: tuple[str, ...], tile: tuple[int, int], classes: list[str], max_pixels: int | None
    ):
        self._mosaics, labels = {}, {}
        for pool in pools:
            file = folder / f"{pool}_labels.npy"
            labels[pool] = single_labels(read_npy(file), classes, str(file))
            paths = [path for path in folder.glob(f"{pool}_*") if path.suffix in _SUFFIXES]
            paths.sort(key=lambda path: (len(path.stem), path.stem))  # _99 before _100
            if not paths:
                raise StudyError(f"{folder / pool}_00.webp: no such mosaic, neither .webp nor .png")
            self._mosaics[pool] = Mosaic(paths, tile, max_pixels)
            self._mosaics[pool].check_rows(len(labels[pool]), str(file))
        shapes = {pool: mosaic.shape for pool, mosaic in self._mosaics.items()}
        if len(set(shapes.values())) > 1:
            raise StudyError(f"{folder}: the pools' images differ in shape: {shapes}")
        super().__init__(classes, labels)

    def images(self, pool: str, indices: np.ndarray) -> np.ndarray:
        return self._mosaics[pool].read(indices)
