"""Feature extractors: the config's `extractor` names a module here, which is imported only when used.

A module has `open(options, *, backbone_folder=None, data_root=None) -> Extractor`. `images` has no module (networks
read the images), and `precomputed` reads what the user brings, row by row, instead of computing from images.
"""

import os
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from dpstudy.core.by_name import opener
from dpstudy.core.errors import StudyError

NOT_COMPUTED = ("images", "precomputed")


def parts_of(options: Mapping) -> list:
    """The feature sets that a `joined` feature set combines; for any other, itself alone."""
    return options.get("parts", [options])


def network_of(options: Mapping) -> str | None:
    """The name of a feature set's network, a folder below results/backbones: that of a backbone or of a package."""
    weights = options.get("weights")
    return weights["package"] if isinstance(weights, Mapping) else options.get("backbone")


def extractor_modules(options: Mapping) -> list[str]:
    """The import paths of a feature set's extractor and of its parts'; none where no features are computed."""
    names = dict.fromkeys(one["extractor"] for one in (options, *parts_of(options)))
    return [f"{__name__}.{name}" for name in names if name not in NOT_COMPUTED]


class Extractor(Protocol):
    """The interface of extractors: they turn images into features, each record's from that record alone.

    One that computes with a file of the user's has an attribute `made_from`, which says by its hash which file it was;
    one that several packages can compute has `backend`, which says what did.
    """

    def shape(self, image_shape: tuple[int, int, int]) -> tuple[int, ...]:
        """The shape of one record's features, (K, H, W) or (d,), for images (H, W, C).

        Raises:
            StudyError: such images do not suit this extractor.
        """
        ...

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Images (n, H, W, C) uint8, n at least 1, to float32 features (n, *shape)."""
        ...


def open_extractor(
    options: dict, backbone_folder: str | os.PathLike | None = None, data_root: str | os.PathLike | None = None
) -> Extractor:
    """The extractor of a feature set's config entry.

    Args:
        options: the entry: extractor, and what that extractor takes.
        backbone_folder: results/backbones/{backbone}, for the extractor `backbone`; of `joined`, that of all of them.
        data_root: what `weights` is relative to, for the extractor `timm`.

    Raises:
        StudyError: it does not exist, or it computes nothing from images (`images`, `precomputed`).
    """
    name = options.get("extractor")
    if name in NOT_COMPUTED:
        raise StudyError(f"extractor {name!r} computes no features from images")
    module = opener(__name__, "extractor", name)
    return module.open(options, backbone_folder=backbone_folder, data_root=data_root)
