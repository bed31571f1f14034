import hashlib

import numpy as np
import pytest

from dpstudy.data import shards
from dpstudy.data.names import split_names
from dpstudy.data.prepare import prepare_manifest, prepare_shard
from dpstudy.data.readers import open_reader

MNIST_MD5 = {
    "train": ("6bbc9ace898e44ae57da46a324031adb", "a25bea736e30d166cdddb491f175f624"),
    "test": ("2646ac647ad5339dbf082846283269ea", "27ae3e4e09519cfbb04c329615203637"),
}
FASHION_MD5 = {
    "train": ("f4a8712d7a061bf5bd6d2ca38dc4d50a", "9018921c3c673c538a1fc5bad174d6f9"),
    "test": ("8181f5470baa50b63fa0f6fddb340f0a", "15d484375f8d13e6eb1aabb0c3f46965"),
}
CIFAR_BATCH_1_SHA256 = "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"
CIFAR_TEST_SHA256 = "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"
NIH = {
    "reader": "image_table",
    "location": "nih-cxr-1000",
    "table": "metadata.csv",
    "path_column": "image_index",
    "mosaic": "images.png",
    "tile": [64, 64],
    "label_columns": ["Effusion", "Infiltration", "Hernia"],
    "subject_column": "patient_id",
    "group_columns": ["patient_gender"],
    "splits": {"test": 0.2, "validation": 0.1},
    "unit": "subject",
    "per_subject": 1000,
    "shards": 2,
}


@pytest.mark.parametrize(("folder", "published"), [("mnist", MNIST_MD5), ("fashion-mnist", FASHION_MD5)])
def test_idx_content_is_bit_exact(real_data, idx_bytes, folder, published):
    reader = open_reader("idx", {"reader": "idx", "location": folder}, real_data)
    for pool, expected in published.items():
        records = reader.read(pool, np.arange(len(reader.rows(pool))))
        found = tuple(hashlib.md5(idx_bytes(array)).hexdigest() for array in (records.images[..., 0], records.labels))
        assert found == expected


def test_cifar10_mosaics_give_the_published_binary_files(real_data):
    reader = open_reader("mosaics", {"reader": "mosaics", "location": "cifar10", "classes": 10}, real_data)
    assert (len(reader.rows("train")), len(reader.rows("test"))) == (50000, 10000)
    for pool, expected in (("train", CIFAR_BATCH_1_SHA256), ("test", CIFAR_TEST_SHA256)):
        records = reader.read(pool, np.arange(10000))
        planes = records.images.transpose(0, 3, 1, 2).reshape(10000, -1)
        binary = np.concatenate([records.labels[:, None].astype(np.uint8), planes], axis=1)
        assert hashlib.sha256(binary.tobytes()).hexdigest() == expected


def test_the_binary_reader_inverts_the_published_layout(real_data, tmp_path):
    mosaics = open_reader("mosaics", {"reader": "mosaics", "location": "cifar10", "classes": 10}, real_data)
    records = mosaics.read("test", np.arange(1000))
    planes = records.images.transpose(0, 3, 1, 2).reshape(1000, -1)
    content = np.concatenate([records.labels[:, None].astype(np.uint8), planes], axis=1).tobytes()
    for name in [*(f"data_batch_{part}" for part in range(1, 6)), "test_batch"]:
        (tmp_path / f"{name}.bin").write_bytes(content)
    reader = open_reader("cifar", {"reader": "cifar", "location": ".", "format": "binary"}, tmp_path)
    again = reader.read("test", np.arange(1000))
    np.testing.assert_array_equal(again.images, records.images)
    np.testing.assert_array_equal(again.labels, records.labels)


def test_cifar100_subset_and_emnist_letters(real_data):
    cifar = open_reader("mosaics", {"reader": "mosaics", "location": "cifar100-subset"}, real_data)
    labels = cifar.read("test", np.arange(2000)).labels
    np.testing.assert_array_equal(np.bincount(labels), np.full(100, 20))
    assert cifar.classes[0] == "apple" and len(cifar.classes) == 100
    letters = [chr(ord("A") + place) for place in range(26)]
    options = {"reader": "idx", "location": "emnist-letters-subset", "label_offset": 1, "classes": letters}
    reader = open_reader("idx", options, real_data)
    np.testing.assert_array_equal(np.bincount(reader.read("test", np.arange(4160)).labels), np.full(26, 160))
    counts = np.bincount(reader.read("train", np.arange(36000)).labels)
    assert (counts[0], counts[25]) == (1358, 1364)


def test_nih_by_subject_end_to_end(real_data, tmp_path):
    splits = {}
    for split in split_names(NIH):
        paths = [tmp_path / split / f"part-0000{shard}.parquet" for shard in range(2)]
        for shard, path in enumerate(paths):
            prepare_shard("nih", NIH, real_data, split, shard, path, True)
        prepare_manifest("nih", NIH, real_data, split, paths, tmp_path / split / "manifest.json", True)
        splits[split] = shards.load(tmp_path / split)
        manifest = shards.read_manifest(tmp_path / split)
        assert manifest["subjects"] == len(set(splits[split].subjects))
    assert sum(len(records) for records in splits.values()) == 1000
    subjects = [set(records.subjects) for records in splits.values()]
    assert sum(len(names) for names in subjects) == len(set.union(*subjects)) == 264
    assert sum(records.labels.sum(axis=0) for records in splits.values()).tolist() == [170, 162, 9]
    groups = np.concatenate([records.groups["patient_gender"] for records in splits.values()])
    assert (groups == "M").sum() == 491
    assert splits["train"].images.shape[1:] == (64, 64, 1)
