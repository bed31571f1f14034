from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_table
from dpstudy.features import shards


@pytest.fixture
def folder(tmp_path, make_records):
    """Two shards of 12 and 8 records with (2, 3, 2) features."""
    return write(tmp_path / "features", make_records(20), np.float32)


def write(folder, records, dtype):
    features = np.random.default_rng(1).normal(size=(len(records), 12)).astype(dtype)
    paths = []
    for index, rows in enumerate((slice(0, 12), slice(12, 20))):
        part = records.take(np.arange(20)[rows])
        table = shards.FeatureTable(part.ids, features[rows], part.labels, part.subjects, part.groups, (2, 3, 2))
        paths.append(folder / f"part-{index:05d}.parquet")
        shards.write_shard(paths[-1], table, private=True)
    shards.write_manifest(
        folder / "manifest.json", dataset="toy", features="own", split="train", shard_paths=paths,
        classes=["a", "b", "c"], private=True,
    )  # fmt: skip
    return folder


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("multi_label", [False, True])
def test_what_is_written_is_read_back(tmp_path, make_records, dtype, multi_label):
    records = make_records(20, multi_label=multi_label)
    table = shards.load(write(tmp_path / "f", records, dtype))
    expected = np.random.default_rng(1).normal(size=(20, 12)).astype(dtype)
    np.testing.assert_array_equal(table.features, expected)
    assert table.features.dtype == dtype and table.shape == (2, 3, 2) and table.classes == ("a", "b", "c")
    np.testing.assert_array_equal(table.labels, records.labels)
    assert table.labels.dtype == records.labels.dtype
    assert list(table.ids) == list(records.ids) and list(table.subjects) == list(records.subjects)
    assert list(table.groups["sex"]) == list(records.groups["sex"])


def test_the_manifest_names_layout_and_private_columns(folder):
    manifest = shards.read_manifest(folder)
    assert (manifest["rows"], manifest["dim"], manifest["shape"], manifest["dtype"]) == (20, 12, [2, 3, 2], "float32")
    assert manifest["private"] == ["id", "features", "label", "subject", "group_sex"]
    assert [entry["rows"] for entry in manifest["shards"]] == [12, 8]


def test_rows_that_were_dropped_are_left_out(folder, tmp_path):
    ids = shards.load(folder).ids
    kept = {"dataset": ["toy"] * 3 + ["else"], "split": ["train", "train", "test", "train"], "id": ids[[3, 15, 4, 5]]}
    write_table(tmp_path / "kept.parquet", pa.table(kept))
    assert list(shards.load(folder, [tmp_path / "kept.parquet"]).ids) == [ids[3], ids[15]]
    assert [len(table) for table in shards.iterate(folder, [tmp_path / "kept.parquet"])] == [1, 1]
    other = {"dataset": ["toy"] * 2, "split": ["train"] * 2, "id": ids[[15, 16]]}
    write_table(tmp_path / "other.parquet", pa.table(other))
    both = [tmp_path / "kept.parquet", tmp_path / "other.parquet"]
    assert list(shards.load(folder, both).ids) == [ids[15]]  # a record that matches either public set is dropped


def test_a_changed_or_missing_shard_is_named(folder):
    shard = folder / "part-00001.parquet"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(StudyError, match=r"part-00001.parquet: its SHA-256"):
        shards.load(folder)
    shard.unlink()
    with pytest.raises(StudyError, match=r"part-00001.parquet: no such file"):
        shards.load(folder)


def test_shards_of_different_layout_make_no_manifest(folder):
    first, *_ = shards.iterate(folder)
    shards.write_shard(folder / "part-00001.parquet", replace(first, shape=(12,)), private=True)
    paths = [folder / f"part-0000{index}.parquet" for index in (0, 1)]
    with pytest.raises(StudyError, match="layout"):
        shards.write_manifest(
            folder / "new.json",
            dataset="toy",
            features="own",
            split="train",
            shard_paths=paths,
            classes=[],
            private=True,
        )
    assert not (folder / "new.json").exists()
