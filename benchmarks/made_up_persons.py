"""A public stand-in for a hospital's folder: python -m benchmarks.made_up_persons DATA [PERSONS].

From CIFAR-10's training images (DATA/cifar10) it makes DATA/made-up-persons: a mosaic and a table of persons with one
to six images each, of whom few bear one of six findings, and some two. A finding goes with a class of images, the first
with airplanes and so on; a person's images are alike, but not each shows it. Nothing in it is anybody's.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from dpstudy.data.readers import open_reader

FINDINGS = ("A", "B", "C", "D", "E", "F")
SHARES = (0.12, 0.09, 0.07, 0.05, 0.04, 0.03)  # of the persons; those of the others are images of four classes
SHOWN, SECOND, MOST, COLUMNS = 0.8, 0.15, 6, 10  # ten tiles a row, as the reader has them
CLASSES = [str(label) for label in range(10)]


def write(data: Path, persons: int = 5000) -> int:
    """Write mosaic and table; how many images there are."""
    reader = open_reader("cifar", {"location": "cifar10", "classes": CLASSES}, data)
    labels, rng = reader.read("train", np.arange(len(reader.rows("train")))).labels, np.random.default_rng(0)
    left = [rng.permutation(np.flatnonzero(labels == label)).tolist() for label in range(10)]
    lines, chosen, healthy = [], [], range(len(FINDINGS), 10)
    for person in range(persons):
        own = rng.choice(len(FINDINGS) + 1, p=[*SHARES, 1 - sum(SHARES)])
        second = rng.integers(len(FINDINGS)) if own < len(FINDINGS) and rng.random() < SECOND else None
        sex, age = rng.choice(["F", "M"]), int(rng.normal(55, 15))
        for _ in range(min(rng.geometric(0.4), MOST)):
            borne = {finding for finding in (own, second) if finding is not None and rng.random() < SHOWN}
            borne -= {len(FINDINGS)}
            shown = rng.choice(sorted(borne)) if borne else rng.choice(healthy)
            chosen.append(left[shown].pop())
            lines.append([f"{len(lines):05d}", f"P{person:04d}", sex, age, *(int(k in borne) for k in range(6))])
    folder = data / "made-up-persons"
    folder.mkdir()
    images = reader.read("train", np.sort(chosen)).images[np.argsort(np.argsort(chosen))]
    height, width, channels = images.shape[1:]
    rows = -(-len(images) // COLUMNS)
    whole = np.zeros((rows * COLUMNS, height, width, channels), np.uint8)
    whole[: len(images)] = images
    tiles = whole.reshape(rows, COLUMNS, height, width, channels).swapaxes(1, 2)
    Image.fromarray(tiles.reshape(rows * height, COLUMNS * width, channels)).save(folder / "images.png")
    with open(folder / "metadata.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([["image", "person", "sex", "age", *FINDINGS], *lines])
    return len(lines)


if __name__ == "__main__":
    made = write(Path(sys.argv[1]), *map(int, sys.argv[2:]))
    print(f"{made:,} images in {sys.argv[1]}/made-up-persons")
