"""Descriptions of images for comparison: digests, perceptual hashes, embeddings and a thumbnail of each.

A public image is described as it is. A private one is described as it is and mirrored, at its own size, enlarged and
made smaller (`VARIANTS`), so that a cut-out or a mirrored copy lies near one of them. Nothing here is computed across
images.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensors, write_tensors
from dpstudy.core.progress import progress
from dpstudy.data import shards
from dpstudy.data.records import Columns, concatenate
from dpstudy.dedup.exact import digests, levels
from dpstudy.dedup.grey import LARGEST_SIDE
from dpstudy.dedup.thumbnails import grey, thumbnails, zoomed
from dpstudy.features import open_extractor

VARIANTS = tuple((mirrored, zoom) for zoom in (1.0, 1.25, 0.8) for mirrored in (False, True))
_SCATTERNET = {"extractor": "scatternet", "scaling": "unit"}
_BATCH = 256
_SMALLEST = 16  # pixels a side: below, one class of images already looks alike


@dataclass(frozen=True)
class Description(Columns):
    """The descriptions of n images of one shape.

    Attributes:
        exact: (n, 16) uint8, a digest of each image's pixels.
        levels: (n, 16) uint8, a digest of its small grey square, for images of another size or colour.
        hashes: (n, v, 8) uint8, perceptual hashes of 64 bits of the image and, if v = 2, of its mirror image.
        grey: (n, V, d) float16 embeddings of its variants in grey.
        colour: the same in colour, or None for grey images.
        thumbnails: (n, 32, 32, C) uint8.
        shape: (H, W, C) of the images.
    """

    exact: np.ndarray
    levels: np.ndarray
    hashes: np.ndarray
    grey: np.ndarray
    colour: np.ndarray | None
    thumbnails: np.ndarray
    shape: tuple[int, int, int]

    def __len__(self) -> int:
        return len(self.exact)

    def write(self, path: str | os.PathLike, private: bool) -> None:
        """Write the descriptions as safetensors; with `private`, readable by the owner alone."""
        tensors = {name: value for name, value in vars(self).items() if value is not None}  # grey images have no colour
        write_tensors(path, tensors | {"shape": np.array(self.shape, np.int64)}, private=private)

    @classmethod
    def read(cls, path: str | os.PathLike) -> "Description":
        """The descriptions that `write` wrote.

        Raises:
            StudyError: the file is missing or damaged.
        """
        tensors = read_tensors(path)
        height, width, channels = (int(size) for size in tensors.pop("shape"))
        arrays: dict[str, Any] = {"colour": None, **tensors}
        return cls(**arrays, shape=(height, width, channels))


class Embedding:
    """Turns images (n, H, W, C) uint8 into vectors (n, d) float16 by which candidates are found.

    Attributes:
        on_thumbnails: whether it is to be given thumbnails, or the images as they are.

    Args:
        options: a feature set's; where absent ScatterNet's, which nothing trained.
        backbone_folder, data_root: as of `features.open_extractor`.
    """

    def __init__(self, options: dict | None, backbone_folder: str | None = None, data_root: str | None = None):
        options = options or _SCATTERNET
        self.on_thumbnails = options["extractor"] == "scatternet"
        self._extractor = open_extractor(options, backbone_folder, data_root)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """The features averaged over their maps, and signed square roots of them."""
        features = self._extractor(images)
        pooled = features.reshape(*features.shape[:2], -1).mean(2)
        return (np.sign(pooled) * np.sqrt(np.abs(pooled))).astype(np.float16)


def describe_all(images: np.ndarray, embedding: Embedding, private: bool, what: str = "describing") -> Description:
    """Describe any number of images (n, H, W, C), batch by batch."""
    starts = progress(range(0, max(1, len(images)), _BATCH), what)
    return concatenate([describe(images[at : at + _BATCH], embedding, private) for at in starts])


def describe(images: np.ndarray, embedding: Embedding, private: bool) -> Description:
    """Describe images (n, H, W, C) uint8.

    Args:
        private: whether to describe the variants of each image too.

    Raises:
        StudyError: the images are smaller than 16 pixels a side, or do not suit the embedding.
    """
    shape = images.shape[1:]
    if min(shape[:2]) < _SMALLEST:
        raise StudyError(
            f"dedup: images of {shape[0]} x {shape[1]} pixels are too small to be aligned with others; use `method:"
            " squares`"
        )
    small = thumbnails(images)
    seen = small if embedding.on_thumbnails else images
    variants = VARIANTS if private else VARIANTS[:1]
    mirrors = (False, True) if private else (False,)
    return Description(
        exact=_bytes(digests(images)),
        levels=_bytes(digests(levels(images, LARGEST_SIDE))),
        hashes=np.stack([_hashes(grey(_variant(small, mirrored, 1.0))) for mirrored in mirrors], 1),
        grey=np.stack([embedding(grey(_variant(seen, *each))) for each in variants], 1),
        colour=np.stack([embedding(_variant(seen, *each)) for each in variants], 1) if shape[2] > 1 else None,
        thumbnails=small,
        shape=tuple(shape),
    )


def describe_shard(
    folder: str | os.PathLike, shard: int, path: str | os.PathLike, embedding: Embedding, *, private: bool
) -> None:
    """Describe the images of one shard, batch by batch, and write the descriptions.

    Args:
        folder: results/data/{source}/{split}.

    Raises:
        StudyError: the shard is missing or damaged, or its images do not suit.
    """
    manifest, images = images_of(folder, shard)
    what = f"describing {manifest['dataset']}/{manifest['split']}"
    describe_all(images, embedding, private, what).write(path, private)


def images_of(folder: str | os.PathLike, shard: int) -> tuple[dict, np.ndarray]:
    """The manifest of a folder of shards, and the images of one of them.

    Raises:
        StudyError: a file is missing or damaged, or the data set brings no images.
    """
    manifest = shards.read_manifest(folder)
    records = shards.read_shard(folder, manifest["shards"][shard]["file"], manifest)
    if records.images is None:
        raise StudyError(f"{manifest['dataset']}: it brings no images to compare")
    return manifest, records.images


def _variant(images: np.ndarray, mirrored: bool, zoom: float) -> np.ndarray:
    images = np.ascontiguousarray(images[:, :, ::-1]) if mirrored else images
    return images if zoom == 1 else zoomed(images, zoom)


def _bytes(found: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(found), np.uint8).reshape(len(found), -1)


def _hashes(images: np.ndarray) -> np.ndarray:
    """(n, 8) uint8: the 64 bits of imagehash's DCT hash of grey images (n, H, W, 1)."""
    from imagehash import phash
    from PIL import Image

    return np.stack([np.packbits(phash(Image.fromarray(image[..., 0])).hash) for image in images])
