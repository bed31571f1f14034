"""Extraction against the bare forward pass of the network, and reading features back against reading the file."""

import json
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.timing import alternate, medians, table, title, verdict
from dpstudy.data import shards as images
from dpstudy.data.records import Records

ROWS, SIDE = 4_096, 32
READ_ROWS, DIM, SHARDS = 200_000, 768, 4
SHARE, READ_SHARE = 0.85, 0.5  # asked for, at least
_BLOCK = 1 << 24
NETWORKS = {
    "wrn-16-2 at 32 x 32": {"extractor": "backbone"},
    "resnet18 at 96 x 96": {"extractor": "timm", "model": "resnet18", "weights": "random", "size": [96, 96]},
    "vit_tiny_patch16_224 at 224 x 224": {"extractor": "timm", "model": "vit_tiny_patch16_224", "weights": "random"},
}
FEWER = {"resnet18 at 96 x 96": 1_024, "vit_tiny_patch16_224 at 224 x 224": 256}  # rows
ABOUT = """\
{threads} thread(s), wall seconds, medians of {repeats}. Extraction is the whole job on a shard of {ROWS:,} images
({SIDE} x {SIDE}; the larger networks fewer): reading and checking the images, resizing and scaling them, the network,
writing the features. Bare: the network alone on blocks of prepared tensors of the same size.
"""


def _write_images(folder: Path, rows: int) -> None:
    generator = np.random.default_rng(0)
    ids = np.array([str(row) for row in range(rows)], dtype=object)
    pixels = generator.integers(0, 256, (rows, SIDE, SIDE, 3)).astype(np.uint8)
    records = Records(ids, pixels, generator.integers(0, 10, rows).astype(np.int32))
    images.write_shard(folder / "part-00000.parquet", records, private=True)
    images.write_manifest(
        folder / "manifest.json", dataset="synthetic", split="train", shard_paths=[folder / "part-00000.parquet"],
        classes=[str(label) for label in range(10)], private=True,
    )  # fmt: skip


def _write_backbone(folder: Path) -> None:
    import torch

    from dpstudy.core.files import write_tensors
    from dpstudy.models import networks

    torch.manual_seed(0)
    network = networks.build("wrn-16-2", (3, SIDE, SIDE), 10)
    write_tensors(folder / "model.safetensors", {name: value.numpy() for name, value in network.state_dict().items()})
    card = {"backbone": "random", "options": {"architecture": "wrn-16-2"}, "classes": [""] * 10}
    (folder / "card.json").write_text(json.dumps(card | {"image_shape": [SIDE, SIDE, 3]}))


def _extraction(name: str, folder: Path, repeats: int) -> tuple:
    import torch

    from dpstudy.features import open_extractor
    from dpstudy.features.extract import extract_shard

    rows, options = FEWER.get(name, ROWS), NETWORKS[name]
    _write_images(folder / "images", rows)
    (folder / "net").mkdir(parents=True)
    _write_backbone(folder / "net")
    backbone = folder / "net" if options["extractor"] == "backbone" else None
    extractor = open_extractor(options, backbone)
    pixels = images.load(folder / "images").images
    block = extractor.block(*pixels.shape[1:3])
    blocks = [extractor.planes(pixels[start : start + block]) for start in range(0, rows, block)]

    def bare() -> None:
        with torch.inference_mode():
            for planes in blocks:
                extractor.network(planes)

    def whole() -> None:
        extract_shard(
            options, folder / "images", 0, folder / "out" / "part-00000.parquet", private=True, backbone_folder=backbone
        )

    seconds = medians(alternate({"whole": whole, "bare": bare}, repeats, time.perf_counter))
    share = seconds["bare"] / seconds["whole"]
    speeds = [f"{rows / seconds[kind]:,.0f}" for kind in ("whole", "bare")]
    return name, *speeds, f"{100 * share:.0f} %", verdict(share >= SHARE)


def _reading(folder: Path, repeats: int) -> tuple:
    from benchmarks import stream
    from dpstudy.features.batches import ShardBatches

    stream.DIM, stream.SHARD_ROWS = DIM, READ_ROWS // SHARDS
    stream.write_shards(folder, 0, SHARDS)
    batches = ShardBatches([folder])
    files = sorted(folder.glob("*.parquet"))

    def passed() -> None:
        for features, _ in batches:
            features[0]

    def raw() -> None:  # into memory of its own, as a pass hands it out
        for path in files:
            np.fromfile(path, np.uint8)

    def again() -> None:  # into the same few bytes over and over
        buffer = bytearray(_BLOCK)
        for path in files:
            with open(path, "rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass

    seconds = medians(alternate({"pass": passed, "raw": raw, "again": again}, repeats, time.perf_counter))
    size = sum(path.stat().st_size for path in files) / 1e9
    share = seconds["raw"] / seconds["pass"]
    rates = [f"{size / seconds[kind]:.1f} GB/s" for kind in ("pass", "raw", "again")]
    return f"{size:.1f} GB of float16 features", *rates, f"{100 * share:.0f} %", verdict(share >= READ_SHARE)


def run(threads: int, repeats: int) -> None:
    """Print images a second and gigabytes a second, and what they were set against."""
    import torch

    torch.set_num_threads(threads)
    title("(h) Extraction, and reading features back")
    print(ABOUT.format(**globals(), threads=threads, repeats=repeats))
    with tempfile.TemporaryDirectory() as temporary:
        rows = [_extraction(name, Path(temporary) / str(number), repeats) for number, name in enumerate(NETWORKS)]
        table(("images a second", "extraction", "bare", "share", f"goal {100 * SHARE:.0f} %"), rows)
        print()
        found = _reading(Path(temporary) / "features", repeats)
        table(
            (
                "a pass from the page cache",
                "pass",
                "raw",
                "raw, one buffer",
                "share of raw",
                f"goal {100 * READ_SHARE:.0f} %",
            ),
            [found],
        )
