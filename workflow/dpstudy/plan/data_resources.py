"""Memory and GPUs of jobs that make data sets, features, networks and private sums; see resources.py for the others."""

import math
import os
from typing import Any

from dpstudy.config.locations import data_root
from dpstudy.data.names import may_be_numbered
from dpstudy.data.own import own_sources
from dpstudy.data.own_names import BLOCK_BYTES
from dpstudy.data.shard_size import shard_size, told_shape
from dpstudy.features import parts_of
from dpstudy.plan.publics import devices_of_backbone, fitted_on, threads_of_backbone, weights_files
from dpstudy.plan.resources import (
    GPU_MB,
    HELD_MB,
    LEAST_MB,
    content_of,
    decoded_mb,
    gpus,
    in_half_precision,
    matrix_of,
    sum_bytes,
    with_gpu,
)
from dpstudy.plan.sources import numbered, options_of
from dpstudy.pretraining.options import complete

SMALL_IMAGES = ("digits", "glyphs", "dead_leaves", "strokes", "cutouts", "scenes", "idx", "cifar", "mosaics")
NAMES_PER_MB = 0.05  # of what is kept of each record, in MB for each MB of shards
NAME_MB = 8e-4  # of what is known of each record of a table
ROW_GROUP_MB = 67  # of dpstudy.data.shards
EXACT_DIM = 5000  # of dpstudy.features.fits
UNSEEN_MB = 2000  # of a shard whose size cannot be seen beforehand
SHARDS_HELD = 4  # that a pass works on, reads ahead and decodes
CIFAR_PIXELS = 1.84e8  # in all
OPENVINO_MB = 600  # with the network: EfficientNet-Lite0 to 2 took 1,500 to 1,630 in all
NETWORK_MB = 650  # of torch with what extracts features


def description_of_images(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of writing a manifest of image shards.

    A row group is held in several forms, and little of a shard's memory is freed before the next ones are read.
    """
    shards = [*input.shards, *input.get("others", [])]
    decoded = decoded_mb(tuple(map(str, shards)))
    least = 235 if options_of(study, wildcards.source)["reader"] == "digits" else LEAST_MB["prepare_manifest"]
    forms = min(11, 4.5 + 1.7 * (len(shards) - 1))
    more = forms * min(decoded, ROW_GROUP_MB) + 3 * max(0, decoded - ROW_GROUP_MB)
    return int(least + more + NAMES_PER_MB * input.size_mb)


def aligning(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of aligning a private shard's images with their candidates, a few hundred pairs at a time."""
    mb = os.path.getsize(input.private) / 1e6
    return int(765 + 150 * min(mb, 2.8) + 10 * mb)


def comparing(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of comparing a public set's images with the private ones: all are held decoded, and their squares."""
    contents = [content_of(path) for path in input.compared if path.endswith(".json")]
    images = (content for content in contents if content and content.get("image_shape"))
    values = sum(content["rows"] * math.prod(content["image_shape"]) for content in images)
    return int(215 + 3.3e-6 * values)


def description_of_features(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of writing a manifest of feature shards: one is read whole, and checked a row group at a time."""
    largest = max(input.size_files_mb)
    factor = 5.7 if in_half_precision(study, wildcards.features) else 4
    return int(110 + factor * largest + 4.6 * min(max(0, largest - 1.5), ROW_GROUP_MB) + NAMES_PER_MB * input.size_mb)


def preparation(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of preparing a shard of images, including the naming of records by their content."""
    sources = own_sources(options_of(study, wildcards.source)) if wildcards.source in study["datasets"] else []
    named = any(map(may_be_numbered, sources)) and not numbered(study, wildcards.source)
    return int(reading(study, wildcards, input) + (3e-6 * BLOCK_BYTES if named else 0))


def reading(study: dict, wildcards: Any, input: Any) -> int:
    """Megabytes of reading a shard: a row group of images is held four times, the rest and its source once."""
    options = options_of(study, wildcards.source)
    if options["reader"] not in SMALL_IMAGES or options["reader"] == "idx":
        size = shard_size(options, data_root(study), wildcards.split)
        if options["reader"] == "idx":
            return int(135 + 1.15e-6 * size.file_bytes + 3e-6 * size.image_bytes) if size else 250
        if size is None:
            return UNSEEN_MB
        images = size.image_bytes / 1e6
        packed = 2e-6 * size.file_bytes  # a row group of files with images in them, and the images taken out of it
        return int(150 + NAME_MB * size.records + 1.1 * images + 3 * min(images, ROW_GROUP_MB) + packed)
    if options["reader"] == "digits":
        return 150
    if "count" not in options:
        return int(120 + 3e-6 * CIFAR_PIXELS / options["shards"])
    planted = "plant" in options and wildcards.split == "train" and int(wildcards.shard) == options["shards"] - 1
    least = (205 if options["reader"] == "glyphs" else 115) + 60 * planted
    values = math.prod(length or 1 for length in told_shape(options))
    return int(least + 3e-6 * options["count"] * values / options["shards"])


def extraction(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of a feature extraction: images, features, and a network's weights."""
    options = study["features"][wildcards.features]
    images, extracted = shard_of(study, input[0], options)
    weights = sum(os.path.getsize(path) for path in weights_files(study, options) if os.path.exists(path)) / 1e6
    return extraction_mb(options, images, extracted, weights)


def extraction_mb(options: dict, images: float, extracted: float, weights: float) -> int:
    """mem_mb of a feature extraction, given the megabytes of images and features (float32) and of weights."""
    if options["extractor"] == "pixels":
        return int(165 + 9.5 * extracted)
    if options["extractor"] == "precomputed":
        return int(300 + 6.5 * extracted)
    parts = parts_of(options)
    least = (1110 if any(part["extractor"] == "scatternet" for part in parts) else 900) + 300 * (len(parts) - 1)
    normalising = 3.2 * isinstance(options["normalise"], dict)  # by groups
    least += OPENVINO_MB * any(part.get("backend") == "openvino" for part in parts)
    return with_gpu(least + 2 * images + (4 + normalising) * extracted + 4 * weights)


def projection(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of fitting a projection: its public features, and their covariance where they are few enough."""
    options = study["fits"][wildcards.fit]
    content = content_of(input.public[0])
    try:
        rows = min(sum(shard["rows"] for shard in content["shards"]), options["images"])
        values = math.prod(content["image_shape"])
    except (ValueError, KeyError, TypeError):
        return 2400
    source = fitted_on(study, wildcards.fit)
    parts = parts_of(source)
    dim = int(sum(_width(study, part, values) for part in parts))
    least = 230 if source["extractor"] == "pixels" else NETWORK_MB + 150 * (len(parts) - 1)
    components = 32e-6 * dim**2 if dim <= EXACT_DIM else 34e-6 * dim * study["fits"][wildcards.fit]["dim"]
    return int(least + 3e-6 * 4 * rows * dim + components + GPU_MB * projection_gpus(study, wildcards.fit))


def shard_of(study: dict, manifest: str, options: dict) -> tuple[float, float]:
    """(images, features): megabytes of a split's largest shard as float32, from its manifest; 0 if that is damaged.

    ScatterNet makes 81 numbers of 16 of a channel; of networks and what is brought the widest that are known count.
    """
    content = content_of(manifest)
    try:
        values = math.prod(content["image_shape"] or [4096])
        rows = max(shard["rows"] for shard in content["shards"])
    except (ValueError, KeyError, TypeError):
        return 0, 0
    dim = sum(_width(study, part, values) for part in parts_of(options))
    if "fit" in options:
        dim = study["fits"][options["fit"]].get("dim", dim)
    return 4e-6 * rows * values, 4e-6 * rows * dim


def _width(study: dict, options: dict, values: int) -> float:
    """Features of an image of so many values; of networks, and of what is brought, the most that are known."""
    made = {"pixels": values, "scatternet": values * 81 / 16, "random_patches": 8 * options.get("filters", 0)}
    if options["extractor"] == "backbone":
        backbone = complete(study["backbones"][options["backbone"]])
        if backbone["architecture"] == "patches":
            return 2 * backbone["filters"] * backbone["grid"] ** 2 * len(backbone["sizes"])
        return 640
    return made.get(options["extractor"], {"timm": 2048}.get(options["extractor"], 4096))


def sums(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of private sums: d x d matrices in float64 and float32, and the shards in memory; more with torch."""
    dim, classes = matrix_of(input.features[0])
    # a byte a number says which are finite when they are written
    grams = dim**2 * (16 + (sum_bytes(study) + 1) * classes * (wildcards.grams == "per-class")) / 1e6
    with_torch = with_gpu(700) if gpus() or input.size_mb > HELD_MB else 0
    shards = [path for path in input.features if path.endswith(".parquet")]
    shards_mb = min(SHARDS_HELD, len(shards)) * max(input.size_files_mb)
    least = LEAST_MB["sums"] + min(40, 0.06 * dim) + 10 * (wildcards.grams == "per-class")
    return int(least + with_torch + grams + shards_mb)


def calibration(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of calibrating de-duplication on altered private images."""
    return int(760 + 5.2 * study["dedup"].get("sample", 200))


def pretraining(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of a pre-training: each process holds the images, up to a limit, and augmented batches."""
    shards = [path for path in input.public if path.endswith(".parquet")]
    images_mb = min(sum(map(os.path.getsize, shards)) / 1e6 if all(map(os.path.exists, shards)) else 0, 2048)
    architecture = study["backbones"][wildcards.backbone]["architecture"]
    least = 1150 if architecture in ("small_cnn", "patches") else 2000 if architecture.startswith("wrn") else 6000
    on_gpus = devices_of_backbone(study, wildcards.backbone) * gpus()
    return int(threads_of_backbone(study, wildcards.backbone) * (least + 4 * images_mb) + on_gpus * GPU_MB)


def extraction_gpus(study: dict, features: str) -> int:
    """The number of GPUs of an extraction: one, where there is one, for networks."""
    return gpus() if _has_network(study["features"][features]) else 0


def _has_network(options: dict) -> bool:
    return any(part["extractor"] in ("backbone", "timm") for part in parts_of(options))


def pretraining_gpus(study: dict, backbone: str) -> int:
    """The number of GPUs of a pre-training: one, where there is one, for each process."""
    return devices_of_backbone(study, backbone) * gpus()


def projection_gpus(study: dict, fit: str) -> int:
    """The number of GPUs of a projection's fit: one, where there is one, for networks."""
    return gpus() if _has_network(fitted_on(study, fit)) else 0
