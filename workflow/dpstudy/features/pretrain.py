"""Pre-training a small network on a public data set: no private record is touched.

On one machine, a rerun with the same number of threads writes the same bytes. The card names the rows trained on by a
hash of their public ids, not by the hash of kept.parquet, which lists private records too.
"""

import hashlib
import os
import platform

import numpy as np
import torch
from torch import nn

from dpstudy.data import shards
from dpstudy.data.records import Records
from dpstudy.errors import StudyError
from dpstudy.features.recipe import Recipe, planes_of, train
from dpstudy.files import sha256, write_json, write_tensors
from dpstudy.models import wide_resnet
from dpstudy.models.backbones import build
from dpstudy.models.small_cnn import SmallCNN

SMALL = {
    "architecture": "small_cnn", "width": 32, "embedding": 256, "epochs": 6, "batch_size": 128,
    "learning_rate": 0.002, "seed": 0,
}  # fmt: skip
WIDE = {  # de2022 C.3, CIFAR-100; the epochs are ours
    "architecture": "wrn-16-4", "scaling": "unit", "epochs": 30, "steps": None, "batch_size": 128, "learning_rate": 0.1,
    "optimiser": "momentum", "weight_decay": 5e-4, "schedule": "steps", "augmentation": "crop", "seed": 0,
}  # fmt: skip
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
        options: the backbone's config entry; keys as in SMALL or WIDE, by its architecture, and `public`, the public
            set's name.
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
    train_set = _split(public_folder, "train", kept)
    validation = _split(public_folder, "validation", kept)
    manifest = shards.read_manifest(os.path.join(public_folder, "train"))
    where = f"public data set {manifest['dataset']!r}"
    if train_set.images is None or train_set.multi_label:
        raise StudyError(f"{where}: pre-training needs images with one label each")
    if min(train_set.images.shape[1:3]) < 8:
        raise StudyError(
            f"{where}: images are {train_set.images.shape[1:3]}; pre-training needs at least 8 pixels a side"
        )
    if not len(train_set):
        raise StudyError(f"{where}: no row is left to train on")
    where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options["seed"])
        network = build(options, train_set.images.shape[1:], len(manifest["classes"])).to(where)
        train(network, train_set.images, train_set.labels, Recipe.of(options), options.get("scaling", "unit"))
    network.to("cpu")
    if isinstance(network, SmallCNN):
        network.centre.copy_(_mean_embedding(network, train_set))
    tensors = {key: value.numpy() for key, value in network.state_dict().items()}
    if not all(np.isfinite(value).all() for value in tensors.values()):
        raise StudyError(f"backbone {name!r}: training diverged; lower learning_rate ({options['learning_rate']})")
    write_tensors(out_model, tensors)
    card = {
        "backbone": name,
        "architecture": options["architecture"],
        "options": {key: value for key, value in options.items() if key != "public"},
        "classes": manifest["classes"],
        "image_shape": list(train_set.images.shape[1:]),
        "public": manifest["dataset"],
        "public_rows": manifest["rows"],
        "rows_used": len(train_set),
        "rows_sha256": hashlib.sha256("\n".join(map(str, train_set.ids)).encode()).hexdigest(),
        "drop": drop,
        "validation_rows": len(validation) if validation else 0,
        "validation_accuracy": _accuracy(network, validation, options.get("scaling", "unit")) if validation else None,
        "sha256": sha256(out_model),
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
    }
    write_json(out_card, card)


def _complete(options: dict) -> dict:
    """The options with their defaults."""
    architecture = options.get("architecture", "small_cnn")
    wide = wide_resnet.is_wide_resnet(architecture)
    if not wide and architecture != "small_cnn":
        raise StudyError(
            f"backbone: architecture {architecture!r} does not exist; there are small_cnn, and wrn-16-4 and its like"
        )
    defaults = WIDE if wide else SMALL
    unknown = set(options) - set(defaults) - {"public"}
    if unknown:
        raise StudyError(
            f"backbone: unknown key {min(unknown)!r} of architecture {architecture!r}; it has {', '.join(defaults)}"
        )
    return defaults | options


def _split(public_folder: str | os.PathLike, split: str, kept: str | os.PathLike | None) -> Records | None:
    folder = os.path.join(public_folder, split)
    if split != "train" and not os.path.exists(os.path.join(folder, "manifest.json")):
        return None
    records = shards.load(folder)
    return records if kept is None else shards.keep(records, kept, shards.read_manifest(folder)["dataset"], split)


@torch.inference_mode()
def _mean_embedding(network: SmallCNN, records: Records) -> torch.Tensor:
    total = torch.zeros(network.centre.shape, dtype=torch.float64)
    for start in range(0, len(records), _BATCH):
        total += network.embed(planes_of(records.images[start : start + _BATCH], "unit")).double().sum(0)
    return (total / len(records)).float()


@torch.inference_mode()
def _accuracy(network: nn.Module, records: Records, scaling: str) -> float:
    """Percent of records whose largest logit is their label's."""
    right = 0
    for start in range(0, len(records), _BATCH):
        predicted = network(planes_of(records.images[start : start + _BATCH], scaling)).argmax(1).numpy()
        right += int((predicted == records.labels[start : start + _BATCH]).sum())
    return round(100 * right / len(records), 3)
