"""Concatenated features of several extractors: networks, resolutions, handcrafted features.

A record's depend on that record alone, as those of each part do.
"""

import os
from pathlib import Path

import numpy as np

from dpstudy.features import network_of, open_extractor
from dpstudy.features.normalise import check_normalise, normalise


class Joined:
    """The features (d,) of all parts, each flattened and normalised by its own `normalise`, in the config's order.

    Attributes:
        made_from: what the parts say of themselves, each by its place.
        backend: what ran the networks among them, or None.
    """

    def __init__(
        self, options: dict, folder: str | os.PathLike | None = None, data_root: str | os.PathLike | None = None
    ):
        self._rules = [part.get("normalise", "none") for part in options["parts"]]
        self._parts = [open_extractor(part, _folder(part, folder), data_root) for part in options["parts"]]
        self.made_from = {
            f"{place}.{key}": value
            for place, part in enumerate(self._parts)
            for key, value in getattr(part, "made_from", {}).items()
        }

    @property
    def backend(self) -> str | None:
        """The distinct backends of the parts, or None."""
        backends = [name for part in self._parts if (name := getattr(part, "backend", None))]
        return ", ".join(dict.fromkeys(backends)) or None

    def shape(self, image_shape: tuple[int, int, int]) -> tuple[int]:
        """(d,), of images (H, W, C).

        Raises:
            StudyError: such images do not suit a part.
        """
        shapes = [part.shape(image_shape) for part in self._parts]
        for rule, shape in zip(self._rules, shapes, strict=True):
            check_normalise(rule, shape)
        return (sum(int(np.prod(shape)) for shape in shapes),)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Images (n, H, W, C) uint8, n at least 1, to float32 features (n, d)."""
        parts = [normalise(part(images), rule) for part, rule in zip(self._parts, self._rules, strict=True)]
        return np.concatenate([features.reshape(len(images), -1) for features in parts], axis=1)


def _folder(part: dict, folder: str | os.PathLike | None) -> Path | None:
    name = network_of(part)
    return Path(folder) / name if folder is not None and name else None


def open(options: dict, *, backbone_folder=None, data_root=None) -> Joined:
    """The joint extractor of the feature sets in `parts`.

    `backbone_folder` holds the folder of each part's network under its name (results/backbones).

    Raises:
        StudyError: a part cannot be opened.
    """
    return Joined(options, backbone_folder, data_root)
