"""Feature extraction: writing the shards, one job each, and then their manifest.

A shard is written whole or not at all, so an interrupted extraction continues with the shards that are missing.
"""

import math
import os
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.progress import progress
from dpstudy.data import shards as images
from dpstudy.features import Extractor, open_extractor
from dpstudy.features.normalise import check_normalise, normalise
from dpstudy.features.precomputed import read_rows
from dpstudy.features.projection import Projection
from dpstudy.features.shards import FeatureTable, write_manifest, write_shard

_BATCH = 256  # images at once; the features do not depend on it
_ALIKE = 0.02  # of a record's largest feature: what sums in another order may change, in float32 or on a GPU


def extract_shard(
    options: dict,
    image_folder: str | os.PathLike,
    shard: int,
    path: str | os.PathLike,
    *,
    backbone_folder: str | os.PathLike | None = None,
    fit_folder: str | os.PathLike | None = None,
    data_root: str | os.PathLike | None = None,
) -> None:
    """Extract the features of image shard number `shard` and write them to `path`, readable by its owner alone.

    Args:
        options: the feature set's config entry: extractor, scaling, normalise, dtype, location.
        image_folder: results/data/{dataset}/{split}, with its manifest.
        backbone_folder: results/backbones/{backbone}, for the extractor `backbone`.
        fit_folder: results/fits/{fit}, a projection that is applied before `normalise`; or None.
        data_root: what `location` (extractor `precomputed`) and `weights` (`timm`) are relative to.

    Raises:
        StudyError: an option does not exist or does not suit the images, a shard is missing or damaged, or a feature
            is not finite (the row is named).
    """
    dtype = options.get("dtype", "float32")
    manifest = images.read_manifest(image_folder)
    if not 0 <= shard < len(manifest["shards"]):
        raise StudyError(f"{image_folder}: there is no shard {shard}; there are {len(manifest['shards'])}")
    records = images.read_shard(image_folder, manifest["shards"][shard]["file"], manifest)
    where = f"{manifest['dataset']}/{manifest['split']}, shard {shard}"
    if not len(records):
        raise StudyError(f"{where}: no rows to extract features from; lower `shards`")
    made_from: dict[str, str] = {}
    if options.get("extractor") == "precomputed":
        features = _bring(options, image_folder, manifest, shard, data_root)
    else:
        if records.images is None:
            raise StudyError(f"{where}: this data set brings no images; use the extractor 'precomputed'")
        extractor = open_extractor(options, backbone_folder, data_root)
        features = _compute(extractor, options, records.images, where, fit_folder)
        made_from = getattr(extractor, "made_from", {})
        if backend := getattr(extractor, "backend", None):
            made_from = made_from | {"backend": backend}
    rule = options.get("normalise", "none")
    check_normalise(rule, features.shape[1:])
    _check_finite(features, records.ids, f"{where}: a feature is NaN or infinite")
    shape = features.shape[1:]
    flat = normalise(features, rule).reshape(len(records), -1)
    with np.errstate(over="ignore"):  # an overflow becomes an infinity, which is refused
        flat = flat.astype(dtype)
    _check_finite(flat, records.ids, f"{where}: a feature is too large for {dtype}; use float32 or normalise")
    table = FeatureTable(
        records.ids, flat, records.labels, records.subjects, records.groups, shape, counts=records.counts
    )
    write_shard(path, table, True, made_from)


def prepare_manifest(
    features: str, image_folder: str | os.PathLike, shard_paths: list[str | os.PathLike], path: str | os.PathLike
) -> None:
    """Write the manifest of a split of the feature set `features` once its shards are finished.

    Raises:
        StudyError: a shard is missing or damaged, or the shards are not those of `image_folder`.
    """
    manifest = images.read_manifest(image_folder)
    if len(shard_paths) != len(manifest["shards"]):
        raise StudyError(f"{image_folder}: {len(manifest['shards'])} image shards, {len(shard_paths)} feature shards")
    known = {key: manifest[key] for key in ("dataset", "split", "classes")}
    write_manifest(path, features=features, shard_paths=shard_paths, private=True, **known)


def _compute(extractor: Extractor, options: dict, pictures: np.ndarray, where: str, fit_folder) -> np.ndarray:
    shape = extractor.shape(pictures.shape[1:])
    extracted, projection = shape, None
    if fit_folder is not None:
        projection = Projection(fit_folder)
        projection.check(math.prod(shape))
        shape = (projection.dim,)
    check_normalise(options.get("normalise", "none"), shape)  # before the work, not after
    features = np.empty((len(pictures), *shape), np.float32)
    for start in progress(range(0, len(pictures), _BATCH), f"features of {where}"):
        block = extractor(pictures[start : start + _BATCH])
        _check_rows(block, (len(pictures[start : start + _BATCH]), *extracted), options["extractor"])
        if start == 0 and len(block) > 1:
            _check_alone(block[:1], extractor(pictures[:1]), options["extractor"])
        features[start : start + _BATCH] = projection(block.reshape(len(block), -1)) if projection else block
    return features


def _check_rows(found: np.ndarray, shape: tuple[int, ...], extractor: str) -> None:
    """
    Raises:
        StudyError: the features are of another layout than the extractor says, which NumPy might spread over records.
    """
    if found.shape != shape:
        raise StudyError(f"extractor {extractor!r}: gave features of shape {found.shape}, and says {shape}")


def _check_alone(together: np.ndarray, alone: np.ndarray, extractor: str) -> None:
    """Features are free of a privacy cost only while no other record has a part in them.

    Raises:
        StudyError: the first record of a batch has other features by itself.
    """
    near = _ALIKE * np.abs(together).max(initial=1e-30)
    if np.isfinite(together).all() and not np.allclose(together, alone, rtol=0, atol=near):
        raise StudyError(
            f"extractor {extractor!r}: a record by itself has other features than among others, so no ledger knows "
            "what these cost; compute those of each image from it alone (docs/add-a-backbone.md)"
        )


def _bring(options: dict, image_folder: str | os.PathLike, manifest: dict, shard: int, data_root) -> np.ndarray:
    if not options.get("location"):
        raise StudyError("extractor 'precomputed' needs the key 'location', a folder below data_root")
    rows = [entry["rows"] for entry in manifest["shards"]]
    start, folder = sum(rows[:shard]), Path(data_root or ".") / options["location"]
    ids = images.ids_of(image_folder, manifest)
    brought = read_rows(folder, manifest["split"], ids, start, start + rows[shard])
    with np.errstate(over="ignore"):
        return brought.astype(np.float32)


def _check_finite(features: np.ndarray, ids: np.ndarray, what: str) -> None:
    finite = np.isfinite(features).reshape(len(features), -1).all(axis=1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise StudyError(f"{what} (row {row}, id {str(ids[row])!r})")
