import json
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table, write_table
from dpstudy.data import shards
from dpstudy.data.records import Records, only


def make_records(count, seed=0, multi=False, prefix="r"):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, (count, 3)).astype(np.int8) if multi else random.integers(0, 3, count, np.int32)
    return Records(
        ids=np.array([f"{prefix}{row}" for row in range(count)], dtype=object),
        images=random.integers(0, 256, (count, 5, 4, 3)).astype(np.uint8),
        labels=labels,
        subjects=np.array([f"s{row // 2}" for row in range(count)], dtype=object),
        groups={"sex": np.array(["F" if row % 3 else "M" for row in range(count)], dtype=object)},
    )


def write_split(folder, batches, private=True):
    paths = [folder / f"part-{place:05d}.parquet" for place in range(len(batches))]
    for path, batch in zip(paths, batches, strict=True):
        shards.write_shard(path, batch, private)
    manifest = folder / "manifest.json"
    shards.write_manifest(
        manifest, dataset="d", split="train", shard_paths=paths, classes=["a", "b", "c"], private=private
    )
    return shards.read_manifest(folder)


def assert_same(left, right):
    for name in ("ids", "images", "labels", "subjects"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    assert left.labels.dtype == right.labels.dtype and left.images.dtype == right.images.dtype
    assert left.groups.keys() == right.groups.keys()
    for name in left.groups:
        np.testing.assert_array_equal(left.groups[name], right.groups[name])


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize(("chunk_bytes", "group_bytes"), [(1 << 30, 1 << 26), (130, 130), (1 << 30, 1)])
def test_round_trip(tmp_path, monkeypatch, multi, chunk_bytes, group_bytes):
    monkeypatch.setattr(shards, "_ARROW_CHUNK_BYTES", chunk_bytes)  # images of a large shard span several chunks
    monkeypatch.setattr(shards, "_GROUP_BYTES", group_bytes)  # and several row groups
    records = make_records(7, multi=multi)
    manifest = write_split(tmp_path, [records.take(np.arange(4)), records.take(np.arange(4, 7))])
    loaded = shards.load(tmp_path)
    assert_same(loaded, records)
    loaded.images[0] = 0  # a network's loader may write in place
    assert_same(shards.read_shard(tmp_path, "part-00001.parquet", manifest), records.take(np.arange(4, 7)))
    assert (manifest["rows"], manifest["image_shape"], manifest["multi_label"]) == (7, [5, 4, 3], multi)
    assert [shard["rows"] for shard in manifest["shards"]] == [4, 3]
    groups = {1 << 26: 1, 130: 2, 1: 4}[group_bytes]
    assert parquet.ParquetFile(tmp_path / "part-00000.parquet").num_row_groups == groups


def test_contract_of_columns(tmp_path):
    manifest = write_split(tmp_path, [make_records(3)])
    table = read_table(tmp_path / "part-00000.parquet")
    assert table.schema.names == ["id", "image", "label", "subject", "group_sex"]
    assert table.schema.field("image").type == pa.binary() and table.schema.field("label").type == pa.int32()
    assert table.column("image")[1].as_py() == make_records(3).images[1].tobytes()
    assert manifest["columns"]["image"] == "binary"
    assert manifest["private"] == table.schema.names


def test_labels_only_round_trip(tmp_path):
    records = Records(np.array(["x", "y"], dtype=object), None, np.array([2, 0], np.int32))
    manifest = write_split(tmp_path, [records])
    loaded = shards.load(tmp_path)
    assert loaded.images is None and loaded.subjects is None and loaded.groups == {}
    assert manifest["image_shape"] is None and "image" not in manifest["columns"]
    np.testing.assert_array_equal(loaded.labels, records.labels)


def test_private_shards_are_readable_by_their_owner_alone(tmp_path):
    write_split(tmp_path / "private", [make_records(2)], private=True)
    public = write_split(tmp_path / "public", [make_records(2)], private=False)
    mode = (tmp_path / "private" / "part-00000.parquet").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert public["private"] == []


def test_a_shard_with_one_flipped_byte_is_refused(tmp_path):
    manifest = write_split(tmp_path, [make_records(20)])
    path = tmp_path / "part-00000.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(StudyError, match=r"part-00000.parquet: its SHA-256 differs"):
        shards.read_shard(tmp_path, path.name, manifest)


def test_a_wrong_row_count_a_missing_and_an_unknown_shard_are_refused(tmp_path):
    manifest = write_split(tmp_path, [make_records(4)])
    manifest["shards"][0]["rows"] = 5
    with pytest.raises(StudyError, match="4 rows, but the manifest says 5"):
        shards.read_shard(tmp_path, "part-00000.parquet", manifest)
    with pytest.raises(StudyError, match="part-00009.parquet: not a shard"):
        shards.read_shard(tmp_path, "part-00009.parquet", manifest)
    (tmp_path / "part-00000.parquet").unlink()
    with pytest.raises(StudyError, match="part-00000.parquet: no such file"):
        shards.load(tmp_path)


def test_a_damaged_manifest_is_refused(tmp_path):
    manifest = write_split(tmp_path, [make_records(4)])
    del manifest["shards"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(StudyError, match="no key 'shards'"):
        shards.read_manifest(tmp_path)


def test_manifest_refuses_a_damaged_shard_an_id_in_two_shards_and_different_shapes(tmp_path):
    with pytest.raises(StudyError, match="part-00001.parquet: the id 'r0' stands twice"):
        write_split(tmp_path, [make_records(3), make_records(2)])
    other = Records(np.array(["z"], dtype=object), np.zeros((1, 6, 4, 3), np.uint8), np.zeros(1, np.int32))
    plain = Records(np.array(["y"], dtype=object), np.zeros((1, 5, 4, 3), np.uint8), np.zeros(1, np.int32))
    with pytest.raises(StudyError, match="part-00001.parquet: its columns or image shape differ"):
        write_split(tmp_path, [plain, other])
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 nonsense")
    with pytest.raises(StudyError, match="broken.parquet: damaged parquet"):
        shards.write_manifest(
            tmp_path / "new.json", dataset="d", split="train", shard_paths=[broken], classes=["a"], private=False
        )
    assert not (tmp_path / "new.json").exists() and not (tmp_path / "manifest.json").exists()


def test_keep_filters_by_data_set_split_and_id(tmp_path):
    records = make_records(5)
    kept = [("d", "train", "r1"), ("d", "train", "r4"), ("d", "test", "r2"), ("other", "train", "r3")]
    columns = dict(zip(("dataset", "split", "id"), zip(*kept, strict=True), strict=True))
    write_table(tmp_path / "kept.parquet", pa.table({name: list(values) for name, values in columns.items()}))
    assert_same(only(records, shards.kept_ids(tmp_path / "kept.parquet", "d", "train")), records.take([1, 4]))
    write_table(tmp_path / "wrong.parquet", pa.table({"dataset": ["d"], "id": ["r1"]}))
    with pytest.raises(StudyError, match="no column 'split'"):
        shards.kept_ids(tmp_path / "wrong.parquet", "d", "train")


def test_records_refuse_columns_of_different_lengths_or_types():
    with pytest.raises(StudyError, match="2 ids but 3 labels"):
        Records(np.array(["a", "b"]), None, np.zeros(3, np.int32))
    with pytest.raises(StudyError, match="uint8"):
        Records(np.array(["a"]), np.zeros((1, 2, 2, 1), np.float32), np.zeros(1, np.int32))
    with pytest.raises(StudyError, match="int32"):
        Records(np.array(["a"]), None, np.zeros(1, np.int64))
