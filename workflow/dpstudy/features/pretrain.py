"""Pre-training a small network on a public data set: no private record is touched.

On one machine, a rerun with the same number of threads writes the same bytes. The card names the rows trained on by a
hash of their public ids, not by the hash of kept.parquet, which lists private records too.
"""

import hashlib
import math
import os
import platform

import numpy as np
import torch
from torch.nn import functional

from dpstudy.data import shards
from dpstudy.data.records import Records
from dpstudy.errors import StudyError
from dpstudy.features.scaling import scale
from dpstudy.files import sha256, write_json, write_tensors
from dpstudy.models.small_cnn import SmallCNN
from dpstudy.progress import progress

DEFAULTS = {
    "architecture": "small_cnn", "width": 32, "embedding": 256, "epochs": 6, "batch_size": 128,
    "learning_rate": 0.002, "seed": 0,
}  # fmt: skip
_WEIGHT_DECAY = 0.01
_WARM_UP_STEPS = 50
_SHIFT, _ROTATION, _ZOOM, _NOISE = 0.12, 0.15, 0.1, 0.12  # half sides, radians, relative size, grey levels of [0, 1]
_BATCH = 512  # images at once when nothing is trained


def pretrain(
    name: str,
    options: dict,
    public_folder: str | os.PathLike,
    out_model: str | os.PathLike,
    out_card: str | os.PathLike,
    *,
    kept: str | os.PathLike | None = None,
    drop: str | None = None,
) -> None:
    """Train backbone `name` on the split `train` of a public set, and write its weights and its card.

    Args:
        options: the backbone's config entry; keys as in DEFAULTS, and `public`, the public set's name.
        public_folder: results/data/{public}, with the split `train` and, if there is one, `validation`.
        out_model: safetensors of the network's parameters and of `centre`, the mean embedding of the rows trained on.
        out_card: JSON that says what the network is and where it comes from.
        kept: kept.parquet of the de-duplication; public rows that it does not list are not trained on.
        drop: the de-duplication's mode, "private" or "public", for the card.

    Raises:
        StudyError: the public set has no images, or several labels a record, or too small ones; an option does not
            exist; or training diverged.
    """
    options = _complete(options)
    train = _split(public_folder, "train", kept)
    validation = _split(public_folder, "validation", kept)
    manifest = shards.read_manifest(os.path.join(public_folder, "train"))
    where = f"public data set {manifest['dataset']!r}"
    if train.images is None or train.multi_label:
        raise StudyError(f"{where}: pre-training needs images with one label each")
    if min(train.images.shape[1:3]) < 8:
        raise StudyError(f"{where}: images are {train.images.shape[1:3]}; pre-training needs at least 8 pixels a side")
    if not len(train):
        raise StudyError(f"{where}: no row is left to train on")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options["seed"])
        network = SmallCNN(train.images.shape[3], len(manifest["classes"]), options["width"], options["embedding"])
        _train(network, train, options)
    network.centre.copy_(_mean_embedding(network, train))
    tensors = {key: value.numpy() for key, value in network.state_dict().items()}
    if not all(np.isfinite(value).all() for value in tensors.values()):
        raise StudyError(f"backbone {name!r}: training diverged; lower learning_rate ({options['learning_rate']})")
    write_tensors(out_model, tensors)
    card = {
        "backbone": name,
        "architecture": options["architecture"],
        "options": {key: options[key] for key in DEFAULTS},
        "classes": manifest["classes"],
        "image_shape": list(train.images.shape[1:]),
        "public": manifest["dataset"],
        "public_rows": manifest["rows"],
        "rows_used": len(train),
        "rows_sha256": hashlib.sha256("\n".join(map(str, train.ids)).encode()).hexdigest(),
        "drop": drop,
        "validation_rows": len(validation) if validation else 0,
        "validation_accuracy": _accuracy(network, validation) if validation else None,
        "sha256": sha256(out_model),
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
    }
    write_json(out_card, card)


def _complete(options: dict) -> dict:
    unknown = set(options) - set(DEFAULTS) - {"public"}
    if unknown:
        raise StudyError(f"backbone: unknown key {min(unknown)!r}; there are {', '.join(DEFAULTS)}")
    options = DEFAULTS | options
    if options["architecture"] != "small_cnn":
        raise StudyError(f"backbone: architecture {options['architecture']!r} does not exist; there is small_cnn")
    return options


def _split(public_folder: str | os.PathLike, split: str, kept: str | os.PathLike | None) -> Records | None:
    folder = os.path.join(public_folder, split)
    if split != "train" and not os.path.exists(os.path.join(folder, "manifest.json")):
        return None
    records = shards.load(folder)
    return records if kept is None else shards.keep(records, kept, shards.read_manifest(folder)["dataset"], split)


def _planes(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(scale(images, "unit").transpose(0, 3, 1, 2)))


def _train(network: SmallCNN, records: Records, options: dict) -> None:
    """AdamW with a linear warm-up and a cosine decay; cross-entropy on augmented images."""
    images, labels = _planes(records.images), torch.from_numpy(records.labels).long()
    random = torch.Generator().manual_seed(options["seed"])
    optimiser = torch.optim.AdamW(network.parameters(), weight_decay=_WEIGHT_DECAY)
    batches = math.ceil(len(images) / options["batch_size"])
    steps = options["epochs"] * batches
    for step in progress(range(steps), "pre-training", total=steps):
        if step % batches == 0:
            order = torch.randperm(len(images), generator=random)
        rate = options["learning_rate"] * min(1, (step + 1) / _WARM_UP_STEPS)
        for group in optimiser.param_groups:
            group["lr"] = rate * (1 + math.cos(math.pi * step / steps)) / 2
        first = step % batches * options["batch_size"]
        rows = order[first : first + options["batch_size"]]
        loss = functional.cross_entropy(network(_augment(images[rows], random)), labels[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def _augment(images: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Shift, rotate and resize each image a little, and add noise; (n, C, H, W) in [0, 1]."""

    def spread(size: float, *shape: int) -> torch.Tensor:
        return size * (2 * torch.rand(len(images), *shape, generator=random) - 1)

    angle, zoom, shift = spread(_ROTATION), 1 + spread(_ZOOM), spread(_SHIFT, 2)
    cos, sin = zoom * torch.cos(angle), torch.sin(angle)
    affine = torch.stack([cos, -sin, shift[:, 0], sin, cos, shift[:, 1]], 1).view(-1, 2, 3)
    grid = functional.affine_grid(affine, list(images.shape), align_corners=False)
    moved = functional.grid_sample(images, grid, align_corners=False)
    return (moved + _NOISE * torch.randn(moved.shape, generator=random)).clamp(0, 1)


@torch.inference_mode()
def _mean_embedding(network: SmallCNN, records: Records) -> torch.Tensor:
    total = torch.zeros(network.centre.shape, dtype=torch.float64)
    for start in range(0, len(records), _BATCH):
        total += network.embed(_planes(records.images[start : start + _BATCH])).double().sum(0)
    return (total / len(records)).float()


@torch.inference_mode()
def _accuracy(network: SmallCNN, records: Records) -> float:
    """Percent of records whose largest logit is their label's."""
    right = 0
    for start in range(0, len(records), _BATCH):
        predicted = network(_planes(records.images[start : start + _BATCH])).argmax(1).numpy()
        right += int((predicted == records.labels[start : start + _BATCH]).sum())
    return round(100 * right / len(records), 3)
