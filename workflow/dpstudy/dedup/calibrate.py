"""Measuring the recall of de-duplication, with altered copies of private images planted among public ones."""

import logging
import os
from collections.abc import Mapping

import numpy as np

from dpstudy.core.files import write_json
from dpstudy.core.progress import progress
from dpstudy.data.records import concatenate
from dpstudy.dedup.basis import read_basis
from dpstudy.dedup.compare import compare
from dpstudy.dedup.describe import Description, Embedding, describe_all, images_of
from dpstudy.dedup.distort import changed, changes
from dpstudy.dedup.outcome import unplanted_in_words
from dpstudy.dedup.rule import Rule
from dpstudy.dedup.thumbnails import grey

SAMPLE = 200
_AMONG = 5000  # public images that the copies are planted among


def calibrate(
    folder: str | os.PathLike,
    private_description: str | os.PathLike,
    public_description: str | os.PathLike,
    basis: str | os.PathLike,
    path: str | os.PathLike,
    embedding: Embedding,
    *,
    rule: Mapping | None = None,
    sample: int = SAMPLE,
) -> None:
    """Count how many altered copies of a sample of private images are found, for each kind of alteration.

    Args:
        folder: results/data/{dataset}/{split}, whose first shard the sample is taken from.
        private_description, public_description: of that shard, and of a shard of the public set.
        sample: how many images.

    The file counts, for each change, how many of the sample are matched with their own copy (`found`), and how many
    with a copy of another image (`mistaken`); and how many match the public images as they are (`unplanted`), which
    are either copies or mistakes. These counts describe private records.

    Raises:
        StudyError: a file is missing or damaged, the data set brings no images, or a threshold is out of range.
    """
    thresholds, measured = Rule(**(rule or {})), read_basis(basis)
    manifest, pictures = images_of(folder, 0)
    rows = np.sort(np.random.default_rng(0).permutation(len(pictures))[:sample])
    images, private = pictures[rows], Description.read(private_description).take(rows)
    public = Description.read(public_description)
    public = public.take(np.arange(min(_AMONG, len(public))))
    counts = {}
    for seed, (name, change) in enumerate(progress(changes().items(), "calibrating", total=len(changes()))):
        copies = describe_all(_like(changed(images, change, seed), public.shape), embedding, private=False)
        matches = compare(concatenate([public, copies]), private, measured, thresholds)
        planted = matches.public >= len(public)
        own_copy = matches.public - len(public) == matches.private
        counts[name] = {"found": int(own_copy.sum()), "mistaken": len(np.unique(matches.private[planted & ~own_copy]))}
    unplanted = len(np.unique(compare(public, private, measured, thresholds).private))
    content = {"dataset": manifest["dataset"], "sample": len(rows), "changes": counts, "unplanted": unplanted}
    write_json(path, content | {"among": len(public)}, private=True)
    if warning := unplanted_in_words(content):
        logging.getLogger("dpstudy").warning("%s", warning)  # on the terminal with what it did to all records: merge


def _like(images: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """Images (n, H, W, C) in the size and colour of a public set."""
    from PIL import Image

    if images.shape[3] != shape[2]:
        images = grey(images).repeat(shape[2], axis=3)
    if images.shape[1:3] == shape[:2]:
        return images
    size = (shape[1], shape[0])
    planes = [
        np.stack([np.asarray(Image.fromarray(plane).resize(size, 3)) for plane in picture.transpose(2, 0, 1)], 2)
        for picture in images
    ]
    return np.stack(planes)
