"""Projections of features (PCA, whitening) fitted on public data; no private record is used.

A fit turns an extractor's features (d) into k numbers: the public mean is subtracted, the first k principal components
of the public features are kept, and each may be divided by a power of its public standard deviation. With `standardise`
each channel is first brought to public mean 0 and variance 1 and each record to norm 1: public statistics in place of
the private ones that tramer2021 pays for (Algorithm 2).
"""

import hashlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json, write_tensors
from dpstudy.core.progress import progress
from dpstudy.data import shards
from dpstudy.features import open_extractor
from dpstudy.features.projection import standardised
from dpstudy.features.shards import kept_ids

_BATCH = 256  # images at once; the fit does not depend on it
_EXACT = 5000  # features up to which the covariance is formed and decomposed
_QUANTILES = (0.1, 0.5, 0.9)


def fit_projection(
    name: str,
    options: dict,
    public_folder: str | os.PathLike,
    outputs: Mapping[str, str | os.PathLike],
    *,
    kept: str | os.PathLike | None = None,
    drop: str | None = None,
    backbone_folder: str | os.PathLike | None = None,
    data_root: str | os.PathLike | None = None,
) -> None:
    """Fit `name` on the split `train` of a public set, and write its projection, card and public points.

    Args:
        options: the fit's config entry: extractor and its keys, or `features`, those of a feature set; standardise,
            dim, images, whiten, seed, and `public`.
        public_folder: results/data/{public}.
        outputs: the files. `projection`: safetensors of mean (d,), components (k, d), scaled by whitening, and
            eigenvalues (k,); with `standardise` center (d,) and scale (d,) too. `points`: safetensors of points
            (points, k), the first public images under the projection, by their hashes. `card`: JSON that says what the
            fit is and how the public features look under it.
        kept: kept.parquet of the de-duplication; public rows that it does not list are not used.
        drop: the de-duplication's mode, for the card.
        backbone_folder: results/backbones/{backbone}, for the extractor `backbone`; of `joined`, that of all of them.
        data_root: what `weights` are relative to, for the extractor `timm`.

    Raises:
        StudyError: the public set has no images, or features that are not finite; or more components are asked for
            than its features have.
    """
    import sklearn
    from sklearn.decomposition import PCA

    ids, features, channels = _public_features(options, Path(public_folder), kept, backbone_folder, data_root)
    standard = {}
    if options["standardise"]:
        standard = _channel_statistics(features, channels)
        features = standardised(features, **standard)
    dim = options["dim"]
    if dim > min(features.shape):
        raise StudyError(
            f"fits.{name}.dim: {dim} components of {features.shape[1]} features from {len(features)} public images; "
            f"at most {min(features.shape)} can be told apart"
        )
    if features.shape[1] <= _EXACT:  # in float64: decompositions in float32 have returned NaN at d = 3,969
        pca = PCA(dim, svd_solver="covariance_eigh").fit(features.astype(np.float64))
    else:
        pca = PCA(dim, svd_solver="randomized", random_state=options["seed"], iterated_power=4).fit(features)
    components = _signed(pca.components_.astype(np.float64))
    variances = pca.explained_variance_.astype(np.float64)
    if not (variances > 1e-12 * variances[0]).all():
        rank = int((variances > 1e-12 * variances[0]).sum())
        raise StudyError(f"fits.{name}.dim: the public features span {rank} dimensions only; choose at most that")
    scaled = components * (variances ** (-options["whiten"] / 2))[:, None]
    mean = pca.mean_.astype(np.float32)
    projected = (features - mean) @ scaled.astype(np.float32).T
    tensors = {"mean": mean, "components": scaled.astype(np.float32), "eigenvalues": variances.astype(np.float32)}
    write_tensors(outputs["projection"], tensors | standard, {"kind": "pca"})
    first = np.argsort(_hashes(ids, options["seed"]))[: options["points"]]
    write_tensors(outputs["points"], {"points": projected[first]})
    norms = np.quantile(np.linalg.norm(projected, axis=1), _QUANTILES)
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scikit-learn": sklearn.__version__}
    card = {
        "fit": name,
        "options": dict(options),
        "images": len(features),
        "rows_hash": hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()[:16],
        "drop": drop,
        "features": features.shape[1],
        "explained_variance": float(pca.explained_variance_ratio_.sum()),
        "norm_quantiles": dict(zip(map(str, _QUANTILES), norms, strict=True)),
        "versions": versions,
    }
    write_json(outputs["card"], card)


def _channel_statistics(features: np.ndarray, channels: int) -> dict[str, np.ndarray]:
    """center (d,) and scale (d,) that bring each channel of (n, d) features to mean 0 and variance 1.

    Raises:
        StudyError: a channel is constant, so that nothing can be told about it.
    """
    maps = features.reshape(len(features), channels, -1)
    mean, deviation = (moment(maps, axis=(0, 2), dtype=np.float64) for moment in (np.mean, np.std))
    if not (deviation > 0).all():
        constant = int(np.flatnonzero(deviation == 0)[0])
        raise StudyError(f"feature channel {constant} is the same in all public images; choose another public set")
    repeat = maps.shape[2]
    return {
        "center": np.repeat(mean, repeat).astype(np.float32),
        "scale": np.repeat(1 / deviation, repeat).astype(np.float32),
    }


def _signed(components: np.ndarray) -> np.ndarray:
    """Components whose largest entry is positive: the sign of an eigenvector is a matter of taste."""
    largest = np.abs(components).argmax(1)
    return components * np.sign(components[np.arange(len(components)), largest])[:, None]


def _public_features(
    options: dict, folder: Path, kept, backbone_folder, data_root
) -> tuple[list[str], np.ndarray, int]:
    """The public training images whose ids hash lowest: ids, features (n, d) float32, and how many channels d has."""
    folder = folder / "train"
    manifest = shards.read_manifest(folder)
    if manifest["image_shape"] is None:
        raise StudyError(f"{folder}: this public set brings no images; a fit needs them")
    chosen = _chosen(folder, manifest, options, kept)
    extractor = open_extractor(options.get("features", options), backbone_folder, data_root)
    shape = extractor.shape(tuple(manifest["image_shape"]))
    width = int(np.prod(shape))
    features = np.empty((len(chosen), width), np.float32)
    ids: list[str] = []
    for entry in progress(manifest["shards"], f"features of {manifest['dataset']}"):
        records = shards.read_shard(folder, entry["file"], manifest)
        if records.images is None:
            raise StudyError(f"{folder}: {entry['file']} has no images, though its manifest says so")
        rows = np.flatnonzero(np.fromiter((name in chosen for name in records.ids), bool, len(records)))
        for start in range(0, len(rows), _BATCH):
            part = records.images[rows[start : start + _BATCH]]
            features[len(ids) + start : len(ids) + start + len(part)] = extractor(part).reshape(len(part), -1)
        ids += [str(name) for name in records.ids[rows]]
    if not np.isfinite(features).all():
        row = int(np.flatnonzero(~np.isfinite(features).all(1))[0])
        raise StudyError(f"{folder}: a feature of the public image {ids[row]!r} is NaN or infinite")
    return ids, features, shape[0]


def _chosen(folder: Path, manifest: dict, options: dict, kept) -> set[str]:
    names = shards.ids_of(folder, manifest)
    if kept is not None:
        keep = kept_ids([kept], manifest)
        names = [name for name in names if name in keep]
    if not names:
        raise StudyError(f"{folder}: no public image is left to fit on")
    order = np.argsort(_hashes(names, options["seed"]))[: options["images"]]
    return {names[place] for place in order}


def _hashes(names: list[str], salt: int) -> np.ndarray:
    """What public images are ordered by."""
    return np.array([hashlib.sha256(f"{salt}\0{name}".encode()).hexdigest() for name in names])
