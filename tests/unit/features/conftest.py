"""What the feature tests share: small image folders with a manifest."""

import numpy as np
import pytest

from dpstudy.data import shards
from dpstudy.data.records import Records


@pytest.fixture
def make_records():
    """A function: n random images with labels, subjects and one group column."""

    def make(n=20, shape=(8, 8, 1), seed=0, multi_label=False):
        random = np.random.default_rng(seed)
        labels = random.integers(0, 2, (n, 3)).astype(np.int8) if multi_label else np.arange(n, dtype=np.int32) % 3
        return Records(
            ids=np.array([f"r{seed}-{row}" for row in range(n)], dtype=object),
            images=random.integers(0, 256, (n, *shape)).astype(np.uint8),
            labels=labels,
            subjects=np.array([f"s{row // 2}" for row in range(n)], dtype=object),
            groups={"sex": np.array(["f", "m"] * (n // 2) + ["f"] * (n % 2), dtype=object)},
        )

    return make


@pytest.fixture
def make_folder(tmp_path):
    """A function: write records as shards of results/data/{dataset}/{split}; returns the folder."""

    def make(records, dataset="toy", split="train", count=1, private=True, classes=("a", "b", "c")):
        folder = tmp_path / "data" / dataset / split
        paths = [folder / f"part-{index:05d}.parquet" for index in range(count)]
        for path, rows in zip(paths, np.array_split(np.arange(len(records)), count), strict=True):
            shards.write_shard(path, records.take(rows), private)
        shards.write_manifest(
            folder / "manifest.json", dataset=dataset, split=split, shard_paths=paths, classes=classes,
            private=private,
        )  # fmt: skip
        return folder

    return make
