"""Pre-training a network on a public data set; no private record is used.

On one machine, a rerun with the same number of threads writes the same bytes. The card names the rows trained on by a
hash of their public ids, not by the hash of kept.parquet, which lists private records too.
"""

import hashlib
import json
import os
import platform
from pathlib import Path

import torch

from dpstudy.core.errors import StudyError
from dpstudy.core.files import sha256, write_json, write_tensors
from dpstudy.features.scaling import check_scaling
from dpstudy.methods.keeper import Keeper
from dpstudy.methods.ranks import Ranks
from dpstudy.models import backbones
from dpstudy.models.small_cnn import SmallCNN
from dpstudy.pretraining import judged, patches
from dpstudy.pretraining.options import complete
from dpstudy.pretraining.recipe import Recipe
from dpstudy.pretraining.rows import PublicRows, check_images
from dpstudy.pretraining.train import train

_MACHINERY = ("devices", "workers", "checkpoint_minutes")  # options that do not change the weights


def pretrain(
    name: str,
    options: dict,
    public_folder: str | os.PathLike,
    out_model: str | os.PathLike,
    out_card: str | os.PathLike,
    *,
    kept: str | os.PathLike | None = None,
    dedup: dict | None = None,
    checkpoint: str | os.PathLike | None = None,
    library: str | None = None,
    ranks: Ranks | None = None,
) -> None:
    """Train backbone `name` on the split `train` of a public set, and write its weights and its card.

    Args:
        options: the backbone's config entry; keys as in `options`, by its architecture, and `public`, the public
            set's name.
        public_folder: results/data/{public}, with the split `train` and, if there is one, `validation`.
        out_model: safetensors of the network's parameters; of a small CNN also of `centre`, the mean embedding of the
            rows trained on.
        out_card: JSON that says what the network is and where it comes from.
        kept: kept.parquet of the de-duplication; public rows that it does not list are not trained on.
        dedup: how the set was matched against private records, for the card; None: it was not.
        checkpoint: a file from which a killed training goes on; None: it starts again.
        library: hash of the code; a checkpoint that other code made is not used.
        ranks: the processes that share the training; the first one writes.

    Raises:
        StudyError: the public set has no images, or several labels a record, or too small ones; an option does not
            exist; or training diverged.
    """
    ranks, given, options = ranks or Ranks(), options, complete(options)
    rows = PublicRows(Path(public_folder) / "train", kept)
    check_images(rows, labelled=options.get("objective") == "labels")
    *native, channels = rows.manifest["image_shape"]
    if channels == 1 and "scaling" not in given:
        options["scaling"] = "unit"  # the constants of others are those of colours
    check_scaling(options["scaling"], channels)
    size = tuple(options["size"] or native)
    trained = {key: value for key, value in options.items() if key != "public" and key not in _MACHINERY}
    network: torch.nn.Module
    with torch.random.fork_rng(devices=[]):
        try:
            if options["architecture"] == "patches":
                network = patches.cut(rows, options, size, channels)
            else:
                torch.manual_seed(options["seed"])
                network = backbones.build(options, (*size, channels), len(rows.manifest["classes"]))
                keeper = None
                if checkpoint:
                    made_by = {"options": trained, "rows": rows.sha256, "shards": rows.manifest["shards"]}
                    keeper = Keeper(checkpoint, made_by | {"library": library}, options["checkpoint_minutes"])
                beside = {"ranks": ranks, "keeper": keeper, "workers": options["workers"]}
                network = train(network, rows, Recipe.of(options), options["scaling"], size, **beside)
        except StudyError as error:
            sentence = str(error).rpartition("StudyError: ")[2].strip()  # a worker's comes with its traceback
            raise StudyError(f"backbone {name!r}: {sentence}") from None
    if not ranks.first:
        return
    if isinstance(network, SmallCNN):
        network.centre.copy_(judged.mean_embedding(network, rows, options["scaling"], size))
    write_tensors(out_model, {key: value.numpy() for key, value in network.state_dict().items()})
    card = {
        "backbone": name,
        "architecture": options["architecture"],
        "options": trained,
        "classes": rows.manifest["classes"],
        "image_shape": [*size, channels],
        "public": rows.manifest["dataset"],
        "public_shape": rows.manifest["image_shape"],
        "public_rows": rows.manifest["rows"],
        "rows_used": len(rows),
        "rows_sha256": rows.sha256,
        "dedup": dedup and dedup | {"sha256": _hash({"settings": dedup, "rows": rows.sha256})},
        **judged.validation(network, rows, _validation(public_folder, kept), options, size),
        "sha256": sha256(out_model),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
    }
    write_json(out_card, card)


def _validation(public_folder: str | os.PathLike, kept: str | os.PathLike | None) -> PublicRows | None:
    folder = Path(public_folder) / "validation"
    return PublicRows(folder, kept) if (folder / "manifest.json").exists() else None


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
