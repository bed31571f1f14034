"""How the features beside this file were made: python studies/demo/extract.py FASHION_MNIST_FOLDER

ScatterNet of the first 12,000 training and 2,000 test images of Fashion-MNIST (Xiao, Rasul and Vollgraf 2017; MIT
licence), projected to 48 numbers by a PCA of pictures that a program drew, each component scaled by the root of its
deviation. Nothing is computed across the images themselves.
"""

import sys
from pathlib import Path

import numpy as np

from dpstudy.data.readers import cutouts, idx
from dpstudy.features import open_extractor

ROWS, DRAWN, DIM = {"train": 12_000, "test": 2_000}, 4_000, 48
CLASSES = ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]


def main(source: str) -> None:
    """Write {split}.npy and {split}_labels.npy for each split."""
    extractor = open_extractor({"extractor": "scatternet", "scaling": "unit"})
    drawn = cutouts.open({"count": DRAWN, "seed": 0}, Path())
    public = flat(extractor(drawn.read("all", np.arange(DRAWN)).images))
    mean = public.mean(0)
    _, deviations, components = np.linalg.svd((public - mean) / np.sqrt(DRAWN), full_matrices=False)
    projection = components[:DIM].T / np.sqrt(deviations[:DIM])
    target = Path(__file__).with_name("fashion-mnist")
    pictures = idx.open({"location": ".", "classes": CLASSES}, Path(source))
    for split, rows in ROWS.items():
        records = pictures.read(split, np.arange(rows))
        features = (flat(extractor(records.images)) - mean) @ projection
        np.save(target / f"{split}.npy", features.astype(np.float16))
        np.save(target / f"{split}_labels.npy", np.asarray(records.labels, np.uint8))


def flat(features: np.ndarray) -> np.ndarray:
    """(n, d) of (n, ...)."""
    return features.reshape(len(features), -1)


if __name__ == "__main__":
    main(sys.argv[1])
