"""What the data tests share: writing small sources, and asserting that bad ones leave nothing behind."""

import csv
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.data.prepare import prepare_manifest, prepare_shard
from tests.unit.dedup.conftest import make_images  # noqa: F401, a fixture


@pytest.fixture
def refused(tmp_path):
    """A function: preparing shard 0 of `split` is refused, names all `words`, and writes nothing."""

    def check(options, root, *words, split="train"):
        out = tmp_path / "out-of-refused"
        with pytest.raises(StudyError) as caught:
            prepare_shard("bad", options, root, split, 0, out / "part-00000.parquet", True)
        message = str(caught.value)
        assert message.startswith("data set 'bad'")
        assert "\n" not in message
        for word in words:
            assert word in message, f"{word!r} not in {message!r}"
        assert not list(out.glob("*")) and not list(out.glob(".*"))

    return check


@pytest.fixture
def idx_bytes():
    """A function: an array as the bytes of an IDX file."""

    def make(array):
        header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
        return header + array.astype(np.uint8).tobytes()

    return make


@pytest.fixture(scope="session")
def real_data():
    """The folder of real public data, where there is one."""
    root = Path(os.environ.get("DPSTUDY_DATA") or Path(__file__).parents[4] / "shared" / "data")
    if not root.is_dir():
        pytest.skip(f"no folder {root}")
    return root


OWN = {
    "reader": "image_table", "location": "own", "table": "table.csv", "path_column": "path", "label_column": "label",
    "classes": ["a", "b"], "subject_column": "person", "splits": {"test": 0.4}, "unit": "subject", "per_subject": 9,
}  # fmt: skip


@pytest.fixture
def own(tmp_path):
    """A folder with 24 images of 12 persons, and a function that writes its table anew without some of the rows."""
    folder = tmp_path / "own"
    folder.mkdir()
    for row in range(24):
        pixels = np.random.default_rng(row).integers(0, 256, (6, 6)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{row}.png")

    def write(*without):
        with open(folder / "table.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["path", "label", "person"])
            writer.writerows(
                [f"{row}.png", "ab"[row % 2], f"p{row // 2}"] for row in range(24) if f"{row}.png" not in without
            )

    write()
    return tmp_path, write


def prepare(root, split, delta=None, **changes):
    out, options = root / "out" / split, OWN | changes
    prepare_shard("own", options, root, split, 0, out / "part-00000.parquet", True, delta=delta)
    prepare_manifest("own", options, root, split, [out / "part-00000.parquet"], out / "manifest.json", True)
    return out
