"""De-duplication of pictures that resemble each other: copies that are found, and matches that nobody planted."""

import os

import numpy as np

PUBLIC, PRIVATE, SAMPLE, SIDE = 2_000, 300, 100, 32
XRAYS = {"reader": "image_table", "location": "nih-cxr-1000", "table": "metadata.csv", "mosaic": "images.png"}
XRAYS |= {"tile": [64, 64], "label_columns": ["Effusion"]}
FILES = {  # below DPSTUDY_DATA: entries of public and private images, and how many
    "CIFAR-10 among CIFAR-100": (
        ({"reader": "mosaics", "location": "cifar100"}, PUBLIC),
        ({"reader": "mosaics", "location": "cifar10", "classes": list("0123456789")}, PRIVATE),
    ),
    "digits among letters": (
        (
            {"reader": "idx", "location": "emnist-letters-subset", "classes": list("0abcdefghijklmnopqrstuvwxyz")},
            PUBLIC,
        ),
        ({"reader": "idx", "location": "mnist"}, PRIVATE),
    ),
    "chest X-rays": ((XRAYS, 700), (XRAYS, PRIVATE)),
}


def run(threads: int, repeats: int) -> None:
    """Print both in percent, by the default rule and by `threshold: 1`; of image files too where DPSTUDY_DATA has them.

    `repeats` is not used.
    """
    import torch

    torch.set_num_threads(threads)
    for name, noise, channels in (("drawn", 8, 1), ("drawn, noisy", 20, 1), ("drawn, coloured", 8, 3)):
        _measure(name, shapes(PUBLIC, noise, channels, 1), shapes(PRIVATE, noise, channels, 2))
    if root := os.environ.get("DPSTUDY_DATA"):
        for name, ((public, rows), (private, own)) in FILES.items():
            first = rows if public == private else 0  # other images of the same set
            _measure(name, _read(root, public, 0, rows), _read(root, private, first, first + own))


def shapes(count: int, noise: float, channels: int, seed: int) -> np.ndarray:
    """(n, 32, 32, channels) uint8: a bright disc, square or triangle on a dark ground, of any size and place."""
    from PIL import Image, ImageDraw

    random, pictures = np.random.default_rng(seed), []
    for _ in range(count):
        ground, bright = (tuple(map(int, random.integers(*ends, 3))) for ends in ((0, 60), (150, 255)))
        image = Image.new("RGB", (4 * SIDE, 4 * SIDE), ground)
        radius, (x, y) = random.uniform(0.15, 0.35) * 4 * SIDE, random.uniform(0.35, 0.65, 2) * 4 * SIDE
        draw, box = ImageDraw.Draw(image), (x - radius, y - radius, x + radius, y + radius)
        kind = random.integers(3)
        if kind < 2:
            (draw.ellipse if kind else draw.rectangle)(box, fill=bright)
        else:
            draw.polygon([(x, y - radius), (x - radius, y + radius), (x + radius, y + radius)], fill=bright)
        small = image.convert("RGB" if channels == 3 else "L").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        pixels = np.asarray(small, np.float64).reshape(SIDE, SIDE, channels)
        pictures.append(pixels + random.normal(0, noise, pixels.shape))
    return np.clip(np.rint(pictures), 0, 255).astype(np.uint8)


def _read(root: str, entry: dict, start: int, end: int) -> np.ndarray:
    from dpstudy.data.readers import open_reader

    return open_reader(entry["reader"], entry, root).read("train", np.arange(start, end)).images


def _measure(name: str, public: np.ndarray, private: np.ndarray) -> None:
    from dpstudy.data.records import concatenate
    from dpstudy.dedup.basis import fit
    from dpstudy.dedup.compare import compare
    from dpstudy.dedup.describe import DEFAULT_EMBEDDING, describe_all
    from dpstudy.dedup.distort import changed, changes
    from dpstudy.dedup.rule import Rule
    from dpstudy.features import open_extractor

    extractor = open_extractor(DEFAULT_EMBEDDING)
    theirs = describe_all(public, extractor, DEFAULT_EMBEDDING, False)
    own, basis = describe_all(private, extractor, DEFAULT_EMBEDDING, True), fit(theirs)
    rules = {"default": Rule(), "threshold: 1": Rule(threshold=1.0)}
    unplanted = {rule: len(np.unique(compare(theirs, own, basis, each).private)) for rule, each in rules.items()}
    sample = np.sort(np.random.default_rng(0).permutation(len(private))[:SAMPLE])
    print(f"{name}: {len(private)} private images among {len(public)}", flush=True)
    print("  unplanted:", {rule: round(100 * count / len(private), 1) for rule, count in unplanted.items()}, flush=True)
    for seed, (change, distort) in enumerate(changes().items()):
        copies = describe_all(changed(private[sample], distort, seed), extractor, DEFAULT_EMBEDDING, False)
        planted, found = concatenate([theirs, copies]), {}
        for rule, each in rules.items():
            pairs = compare(planted, own.take(sample), basis, each)
            hits = pairs.public - len(theirs) == pairs.private
            found[rule] = round(100 * int(hits.sum()) / len(sample), 1)
        print(f"  {change}:", found, flush=True)
