"""What a shard's images will take, told without opening the data set, against what they take."""

import csv
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from dpstudy.data.prepare import prepare_shard
from dpstudy.data.shard_size import shard_size
from dpstudy.files import read_table

ROWS, SIDE = 40, 12
TABLE = {"reader": "image_table", "location": "own", "table": "labels.csv", "path_column": "path"}
TABLE |= {"label_column": "finding", "classes": ["no", "yes"], "splits": {"test": 0.25, "validation": 0.25}}


@pytest.fixture
def own(tmp_path):
    """Images in a folder a class, and a table of them."""
    folder = tmp_path / "own"
    rows = [("path", "finding")]
    for row in range(ROWS):
        kind = ("no", "yes")[row % 2]
        (folder / "images" / kind).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((SIDE, SIDE + 2), row, np.uint8)).save(folder / "images" / kind / f"{row}.png")
        rows.append((f"images/{kind}/{row}.png", kind))
    with open(folder / "labels.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return tmp_path


def taken(root, options, split) -> int:
    """Bytes of the images of the split's first shard."""
    prepare_shard("own", options, root, split, 0, root / "out.parquet", True)
    return sum(map(len, read_table(root / "out.parquet").column("image").to_pylist()))


FOLDER = {"reader": "image_folder", "location": "own/images", "splits": {"test": 0.25, "validation": 0.25}}
CASES = [
    TABLE,
    TABLE | {"size": [30, 20], "channels": 3},
    TABLE | {"shards": 2, "splits": {"test": 0.25, "records": 10}},
    FOLDER,
    FOLDER | {"size": [8, 8], "channels": 1},
]


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_it_is_about_what_the_images_take(own, options, split):
    if split == "validation" and "validation" not in options["splits"]:
        pytest.skip("no such split")
    found = shard_size(options, own, split)
    assert ROWS <= found.records <= ROWS + 1  # the line of names counts
    found = found.image_bytes / taken(own, options, split)
    assert 0.5 < found < 2  # hashes cut so few records only roughly


def test_arrays_are_as_large_as_their_files(tmp_path):
    np.save(tmp_path / "all_images.npy", np.zeros((50, 20, 20, 3), np.uint8))
    options = {"reader": "arrays", "location": ".", "splits": {"test": 0.2}, "shards": 4}
    assert shard_size(options, tmp_path, "train").image_bytes == pytest.approx(50 * 0.8 / 4 * 1200, rel=0.02)


@pytest.mark.parametrize(
    "options",
    [
        TABLE | {"table": "none.csv"},
        TABLE | {"location": "nowhere"},
        {"reader": "labels", "location": "own"},
        {"reader": "chexpert", "location": "own", "size": [8, 8]},
        TABLE | {"splits": {"test": "half"}},
        TABLE | {"size": "large"},
        FOLDER | {"location": "damaged"},
        FOLDER | {"location": "empty"},
    ],
)
def test_what_cannot_be_told_is_none(own, options):
    for name in ("damaged", "empty"):
        (own / name / "yes").mkdir(parents=True)
    (own / "damaged" / "yes" / "0.png").write_bytes(b"\x89PNG\r\n\x1a\nno image")
    huge = struct.pack(">I4s2I5B", 13, b"IHDR", 50_000, 50_000, 8, 0, 0, 0, 0)  # refused as a bomb
    (own / "damaged" / "yes" / "1.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + huge + struct.pack(">I", zlib.crc32(huge[4:]))
    )
    assert shard_size(options, own, "train") is None
