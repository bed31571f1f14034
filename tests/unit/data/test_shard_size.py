"""What a shard's images will take, told without opening the data set, against what they take."""

import csv
import struct
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from dpstudy.core.files import read_table
from dpstudy.data.prepare import prepare_shard
from dpstudy.data.shard_size import shard_size, unpacked_bytes

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


def test_large_images_take_more_while_they_are_decoded(own):
    before, after = (shard_size(options, own, "train") for options in (TABLE, TABLE | {"max_pixels": 10**8}))
    assert after.image_bytes - before.image_bytes == 16 * 10**8


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


def idx(values) -> bytes:
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()


@pytest.mark.parametrize(
    ("splits", "split", "rows", "file"),
    [
        ({}, "train", 60, 60),
        ({}, "test", 20, 20),
        ({"validation": 0.25}, "validation", 15, 60),
        ({"records": 30}, "train", 30, 60),
        ({"test": 0.25}, "test", 15, 60),
    ],
)
def test_idx_files_say_in_their_headers_how_large_they_are(tmp_path, splits, split, rows, file):
    for pool, count in (("train", 60), ("t10k", 20)):
        (tmp_path / f"{pool}-images-idx3-ubyte").write_bytes(idx(np.zeros((count, 5, 4), np.uint8)))
    found = shard_size({"reader": "idx", "location": ".", "splits": splits, "shards": 2}, tmp_path, split)
    assert (found.image_bytes, found.file_bytes) == (rows // 2 * 20 + rows % 2 * 10, file * 20)
    assert shard_size({"reader": "idx", "location": "elsewhere"}, tmp_path, split) is None


def test_a_footer_says_how_large_a_shard_is_unpacked(own):
    prepare_shard("own", FOLDER, own, "train", 0, own / "out.parquet", True)
    least = sum(map(len, read_table(own / "out.parquet").column("image").to_pylist()))
    assert least <= unpacked_bytes(own / "out.parquet") < 2 * least + 5000
    (own / "out.parquet").write_bytes(b"PAR1 but no footer PAR1")
    assert unpacked_bytes(own / "out.parquet") == 0
    with pytest.raises(FileNotFoundError):
        unpacked_bytes(own / "none.parquet")


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


def test_a_row_group_of_images_inside_parquet_is_read_whole(tmp_path):
    (tmp_path / "own").mkdir()
    for name, sizes in {"a": (10, 10), "b": (10, 4000)}.items():
        images = [np.random.default_rng(row).bytes(size) for row, size in enumerate(sizes)]
        table = pa.table({"image": images, "finding": ["no", "yes"]})
        pq.write_table(
            table, tmp_path / "own" / f"{name}.parquet", row_group_size=1, use_dictionary=False, write_statistics=False
        )
    options = TABLE | {"table": "*.parquet", "image_column": "image", "size": [4, 4], "channels": 1}
    found = shard_size(options, tmp_path, "train")
    assert found.records == 4 and 4000 < found.file_bytes < 4400
    assert shard_size(options | {"size": [8, 4]}, tmp_path, "train").image_bytes == 2 * found.image_bytes
