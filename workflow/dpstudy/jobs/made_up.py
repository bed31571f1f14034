"""Synthetic records in the layout of a cell's, and the input files of a training on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpstudy.cell.inputs import CellInputs
from dpstudy.config.public_points import reads_public
from dpstudy.config.tuned import pays
from dpstudy.core.files import write_table, write_tensors
from dpstudy.features import images, shards
from dpstudy.methods.averaging import count_records, weights_by_name
from dpstudy.schema.methods import method_schema

DATASET = "made-up"
TESTED = 8  # records of the test split
DENSE, TINY, LONG, PICTURES = "dense", "tiny", "long", "pictures"
_POINTS = 40  # public ones


@dataclass(frozen=True)
class Layout:
    """The layout of a cell's records: feature shape, classes and kind of labels.

    Attributes:
        shape: of one record's features, or of one image (C, H, W) where `scaling` says how a method reads images.
        classes: how many.
        multi_label: labels are zeros and ones of each class.
    """

    shape: tuple[int, ...]
    classes: int
    multi_label: bool = False
    scaling: str | None = None

    @classmethod
    def of(cls, folder: str, scaling: str | None = None) -> "Layout":
        """The layout of the records in a folder of shards.

        Raises:
            StudyError: its manifest is missing or damaged.
        """
        manifest = (images if scaling else shards).read_manifest(folder)
        return cls(tuple(manifest["shape"]), len(manifest["classes"]), manifest["multi_label"], scaling)


def made_up(
    root: Path,
    options: dict[str, Any],
    dataset: Mapping[str, Any],
    exact: bool,
    layout: Layout,
    count: int,
    number: int,
    dropped: int = 0,
    kind: str = DENSE,
) -> CellInputs:
    """Write synthetic records under `root`; `number` varies the training records, and the test split stays the same.

    Args:
        options: of an entry.
        dataset: its `unit`, `positives`, and `per_subject` and `contributions` of persons.
        exact: sums are to be exact (methods/exact.py).
        count: of each split that is learned from.
        dropped: how many of them de-duplication left out, behind the same public number.
        kind: dense records; tiny ones; long ones, all of the first class; or pictures of 256 grey levels, half of whose
            pixels are black in all.
    """
    splits = ["train", *(["validation"] if pays(options) else [])]
    for place, split in enumerate(splits):
        _write_split(root / split, _records(layout, dataset, count, (number, place), kind), layout)
    _write_split(root / "test", _records(layout, dataset, TESTED, (99, 0), DENSE), layout)
    kept = str(root / "kept.parquet")
    _write_kept(kept, splits, range(count - dropped))
    retrain = pays(options) and options["tuning"].get("retrain")
    inputs = CellInputs(
        train=tuple(str(root / split) for split in (splits if retrain else splits[:1])),
        held_out=str(root / "test"),
        kept=(kept,),
        scaling=layout.scaling,
        validation=str(root / "validation") if pays(options) else None,
    )
    changes: dict[str, Any] = {}
    if method_schema(options["method"])["x-reads"] == "statistics":
        changes["statistics"] = tuple(_sums(folder, inputs, options, dataset, exact) for folder in inputs.train)
    if reads_public(options):
        changes["public"] = str(root / "points.safetensors")
        points = np.random.default_rng(0).uniform(-1, 1, (_POINTS, int(np.prod(layout.shape)))).astype(np.float32)
        write_tensors(changes["public"], {"points": points}, {}, private=False)
    if options.get("start"):  # of the entry, any weights of its network
        changes["start"] = str(root / "start.safetensors")
        _write_start(changes["start"], options, layout)
    return replace(inputs, **changes)


def _records(layout: Layout, dataset: Mapping[str, Any], count: int, key: Sequence[int], kind: str):
    """(features (n, d), labels, subjects, counts of these) of made-up records."""
    rng, dim = np.random.default_rng(key), int(np.prod(layout.shape))
    grey = rng.integers(0, 256, (count, dim)).astype(np.uint8)
    if kind == PICTURES:
        grey[:, rng.permutation(dim)[: dim // 2]] = 0
    if layout.scaling:
        features = {TINY: grey // 100, LONG: grey // 128 * 255}.get(kind, grey)
    else:
        scaled = {TINY: 1e-3, LONG: 100.0}.get(kind, 1.0) * rng.uniform(-2, 2, (count, dim))
        features = (grey / 255 if kind == PICTURES else scaled).astype(np.float32)
    labels = np.arange(count) % layout.classes if kind != LONG else np.zeros(count, np.int64)
    rng.shuffle(labels)
    if layout.multi_label:
        most = min(dataset["positives"], layout.classes)
        places = np.argsort(rng.random((count, layout.classes)), 1)[
            :, : most - (0 if kind == LONG else rng.integers(most))
        ]
        labels = np.zeros((count, layout.classes), np.int8)
        np.put_along_axis(labels, places, 1, 1)
    each = dataset.get("per_subject", 1)
    subjects = np.array([f"s{row // each:03d}" for row in range(count)]) if dataset["unit"] == "subject" else None
    averaged, counts = dataset.get("contributions") == "average", None
    if averaged and subjects is not None:
        counts = count_records(subjects).astype(np.int32)
    return features, labels if layout.multi_label else labels.astype(np.int32), subjects, counts


def _write_split(folder: Path, records, layout: Layout) -> None:
    features, labels, subjects, counts = records
    ids, path = np.array([f"{row:05d}" for row in range(len(labels))]), folder / "part-00000.parquet"
    named: dict[str, Any] = {"dataset": DATASET, "split": folder.name, "shard_paths": [path], "private": True}
    named["classes"] = [f"c{number}" for number in range(layout.classes)]
    if layout.scaling:
        from dpstudy.data import shards as images
        from dpstudy.data.records import Records

        pixels = features.reshape(-1, *layout.shape).transpose(0, 2, 3, 1)
        rows = Records(ids.astype(object), np.ascontiguousarray(pixels), labels, subjects, counts=counts)
        images.write_shard(path, rows, True)
        images.write_manifest(folder / "manifest.json", **named)
        return
    table = shards.FeatureTable(ids, features, labels, subjects, shape=layout.shape, counts=counts)
    shards.write_shard(path, table, private=True)
    shards.write_manifest(folder / "manifest.json", features="records", **named)


def _write_kept(path: str, splits: Sequence[str], rows: Sequence[int]) -> None:
    import pyarrow as pa

    places = [*((split, row) for split in splits for row in rows), *(("test", row) for row in range(TESTED))]
    names = [(split, f"{row:05d}") for split, row in places]
    columns = {"dataset": [DATASET] * len(names), "split": [a for a, _ in names], "id": [b for _, b in names]}
    write_table(path, pa.table(columns), private=True)


def _sums(folder: str, inputs: CellInputs, options, dataset, exact: bool) -> str:
    from dpstudy.features.batches import ShardBatches
    from dpstudy.methods.sufficient_statistics import accumulate

    rules, path = method_schema(options["method"]), f"{folder}/sums.safetensors"
    manifest = shards.read_manifest(folder)
    per_class = all(options[key] == value for key, value in rules["x-per-class"].items())
    accumulate(
        ShardBatches([folder], kept=inputs.kept),
        len(manifest["classes"]),
        float(options["clipping_norm"]),
        dataset["positives"],
        per_class=per_class,
        exact=exact,
        averaged=dataset.get("contributions") == "average",
        class_weights=weights_by_name(dataset.get("class_weights", {}), manifest["classes"], manifest["multi_label"]),
    ).save(path)
    return path


def _write_start(path: str, options, layout: Layout) -> None:
    import torch

    from dpstudy.models import networks

    torch.manual_seed(0)
    shape, crop = layout.shape, (options.get("augmentation") or {}).get("crop")
    network = networks.build(options["network"], (shape[0], *crop) if crop else shape, layout.classes)
    write_tensors(path, {name: value.detach().numpy() for name, value in network.named_parameters()}, {}, private=False)
