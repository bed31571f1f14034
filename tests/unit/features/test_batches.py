"""Shards read again and again: the same records each time, checked, and few of them at once."""

import json
import os
import threading
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_table
from dpstudy.data import shards as data
from dpstudy.data.records import Records
from dpstudy.features import batches, images, plain, shards
from dpstudy.features.batches import ShardBatches
from dpstudy.methods.ranks import Dealt, Ranks

DIM = 12


@pytest.fixture
def make_split(tmp_path, make_records):
    """A function: write feature shards of one split; returns the folder and what it holds."""

    def make(split="train", rows=(12, 8), dtype="float16", seed=1, multi_label=False):
        records = make_records(sum(rows), multi_label=multi_label, seed=seed)
        features = np.random.default_rng(seed).normal(size=(len(records), DIM)).astype(dtype)
        folder, paths, start = tmp_path / "features" / split, [], 0
        for number, count in enumerate(rows):
            part = records.take(np.arange(start, start + count))
            own = features[start : start + count]
            table = shards.FeatureTable(part.ids, own, part.labels, part.subjects, shape=(DIM,))
            paths.append(folder / f"part-{number:05d}.parquet")
            shards.write_shard(paths[-1], table, private=True)
            start += count
        shards.write_manifest(
            folder / "manifest.json", dataset="toy", features="own", split=split, shard_paths=paths,
            classes=["a", "b", "c"], private=True,
        )  # fmt: skip
        return folder, shards.load(folder)

    return make


def joined(source):
    found = list(source)
    return [np.concatenate([batch[place] for batch in found]) for place in (0, 1)]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("multi_label", [False, True])
def test_every_pass_gives_the_records_of_all_folders_in_order(make_split, dtype, multi_label):
    folders, tables = zip(
        *(make_split(split, rows, dtype, 3, multi_label) for split, rows in (("train", (12, 8)), ("validation", (5,)))),
        strict=True,
    )
    source = ShardBatches(folders)
    assert (source.rows, len(source), source.nbytes) == (25, 3, 25 * DIM * np.dtype(dtype).itemsize)
    for _ in range(3):
        features, labels = joined(source)
        np.testing.assert_array_equal(features, np.concatenate([table.features for table in tables]))
        np.testing.assert_array_equal(labels, np.concatenate([table.labels for table in tables]))
        assert features.dtype == dtype and labels.dtype == tables[0].labels.dtype


def test_dropped_rows_are_found_out_in_the_first_pass_alone(make_split, tmp_path, monkeypatch):
    folder, table = make_split(rows=(6, 9, 5))
    keep = np.array([row not in (2, 7, 15, 16, 17, 18, 19) for row in range(20)])
    names = {"dataset": ["toy"] * 13, "split": ["train"] * 13, "id": table.ids[keep]}
    write_table(tmp_path / "kept.parquet", pa.table(names))
    columns, read = [], batches.read_table
    monkeypatch.setattr(batches, "read_table", lambda path, names: columns.append(names) or read(path, names))
    source = ShardBatches([folder], kept=[tmp_path / "kept.parquet"])
    (tmp_path / "kept.parquet").unlink()
    for _ in range(2):
        features, labels = joined(source)
        np.testing.assert_array_equal(features, table.features[keep])
        np.testing.assert_array_equal(labels, table.labels[keep])
    assert columns == [["label", "id"]] * 3 + [["label"]] * 3
    assert source.rows == 20, "how many are kept is private"
    assert source.places().tolist() == np.flatnonzero(keep).tolist()


def test_a_share_reads_its_own_shards(make_split):
    folders, tables = zip(*(make_split(split, (6, 9, 5, 2, 3)) for split in ("train", "validation")), strict=True)
    shares = [ShardBatches(folders, share=(share, 2)) for share in (0, 1)]
    assert [(source.rows, len(source), source.nbytes) for source in shares] == [
        (30, 4, 30 * DIM * tables[0].features.itemsize),
        (20, 6, 20 * DIM * tables[0].features.itemsize),
    ]
    np.testing.assert_array_equal(joined(shares[0])[0], np.concatenate([table.features[:15] for table in tables]))
    for folder in folders:
        (folder / "part-00000.parquet").unlink()
    np.testing.assert_array_equal(joined(shares[1])[0], np.concatenate([table.features[15:] for table in tables]))


def test_hashes_are_checked_in_the_first_pass_alone(make_split, monkeypatch):
    folder, _ = make_split()
    hashed, sha256 = [], batches.sha256
    monkeypatch.setattr(batches, "sha256", lambda path: hashed.append(path.name) or sha256(path))
    source = ShardBatches([folder])
    for _ in range(3):
        list(source)
    assert hashed == ["part-00000.parquet", "part-00001.parquet"]


def test_a_damaged_shard_is_refused_in_the_first_pass(make_split):
    folder, _ = make_split()
    shard = folder / "part-00001.parquet"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    passing = iter(ShardBatches([folder]))
    assert len(next(passing)[0]) == 12
    with pytest.raises(StudyError, match=r"part-00001.parquet: its SHA-256"):
        next(passing)


@pytest.mark.parametrize("change", ["other values", "shorter", "touched", "removed"])
def test_an_edit_between_two_passes_is_refused(make_split, change):
    folder, table = make_split()
    source = ShardBatches([folder])
    list(source)
    shard = folder / "part-00000.parquet"
    words = "part-00000.parquet: it was changed while the study read it"
    if change == "other values":
        shards.write_shard(shard, table.take(np.arange(12)[::-1]), private=True)
    elif change == "shorter":
        shard.write_bytes(shard.read_bytes()[:-900])
    elif change == "touched":
        os.utime(shard, ns=(1, 1))
    else:
        shard.unlink()
        words = "part-00000.parquet: no such file"
    with pytest.raises(StudyError, match=words):
        list(source)


def test_a_manifest_that_counts_other_rows_is_refused(make_split):
    folder, _ = make_split()
    manifest = shards.read_manifest(folder)
    manifest["shards"][0]["rows"] = 13
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(StudyError, match="part-00000.parquet: 12 rows, but the manifest says 13"):
        list(ShardBatches([folder]))


def test_the_next_shard_is_read_meanwhile_and_at_most_three_are_held(make_split, monkeypatch):
    folder, _ = make_split(rows=(4,) * 8)
    begun, alive, most, read = threading.Semaphore(0), set(), [], batches._read

    def watched(shard, counted):
        begun.release()
        features, labels = read(shard, counted)
        alive.add(id(features))
        weakref.finalize(features, alive.discard, id(features))
        most.append(len(alive))
        return features, labels

    monkeypatch.setattr(batches, "_read", watched)
    passing = iter(ShardBatches([folder]))
    next(passing)
    assert begun.acquire(timeout=10) and begun.acquire(timeout=10), "the second shard is read before it is asked for"
    for features, _ in passing:
        features.sum()
    assert len(most) == 8 and max(most) <= 3


def test_a_pass_that_is_left_early_can_be_begun_anew(make_split):
    folder, table = make_split()
    source = ShardBatches([folder])
    for _ in source:
        break
    np.testing.assert_array_equal(joined(source)[0], table.features)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_values_are_copied_from_where_they_lie_in_the_file(tmp_path, monkeypatch, dtype):
    """Several row groups, none, and values of every bit pattern that a float16 has."""
    monkeypatch.setattr(plain, "_GROUP_ROWS", 1000)
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 16).astype(dtype)
    for name, values in (("every", every), ("none", every[:0])):
        path = tmp_path / f"{name}.parquet"
        ids = np.array([str(row) for row in range(len(values))], dtype=object)
        table = shards.FeatureTable(ids, values, np.arange(len(values), dtype=np.int32), shape=(16,))
        shards.write_shard(path, table, private=True)
        flat = values.reshape(-1)
        runs = plain.locate(path.read_bytes(), "features", [flat])
        for cuts in ([], [1], [0, 16_000, 16_001], [len(flat)]):  # wherever the decoder cuts
            assert plain.locate(path.read_bytes(), "features", np.split(flat, cuts)) == runs
        other = flat.copy()
        other[-1:].view(f"u{other.itemsize}")[:] ^= 1
        for wrong in ([other], [flat[:-1]], [flat, flat[:1]]):
            assert not len(flat) or plain.locate(path.read_bytes(), "features", wrong) is None
        assert len(runs) == max(1, -(-len(values) // 1000))
        found = plain.read(path, runs, dtype)
        assert found.tobytes() == values.tobytes()
        decoded = parquet.read_table(path).column("features").combine_chunks().flatten().to_numpy()
        assert decoded.tobytes() == values.tobytes(), "any other reader finds the same"


def test_a_file_of_another_layout_is_decoded(make_split):
    """As other versions of the writer might leave it: compressed, with a dictionary."""
    folder, table = make_split(dtype="float32")
    for number in (0, 1):
        path = folder / f"part-{number:05d}.parquet"
        write_table(path, parquet.read_table(path), private=True)
        values = table.features[:12].reshape(-1) if number == 0 else table.features[12:].reshape(-1)
        assert plain.locate(path.read_bytes(), "features", [values]) is None
    paths = sorted(folder.glob("part-*"))
    shards.write_manifest(
        folder / "manifest.json", dataset="toy", features="own", split="train", shard_paths=paths,
        classes=["a", "b", "c"], private=True,
    )  # fmt: skip
    assert [entry["runs"] for entry in shards.read_manifest(folder)["shards"]] == [None, None]
    np.testing.assert_array_equal(joined(ShardBatches([folder]))[0], table.features)


@pytest.mark.parametrize("kept_share", [1, 3])
def test_subjects_are_those_of_the_rows_that_a_pass_gives(make_split, tmp_path, kept_share):
    (folder, table), (other, more) = make_split("train"), make_split("validation", (5,), seed=2)
    kept = [name for row, name in enumerate([*table.ids, *more.ids]) if row % kept_share == 0]
    splits = ["train" if name in set(table.ids) else "validation" for name in kept]
    write_table(tmp_path / "kept.parquet", pa.table({"dataset": ["toy"] * len(kept), "split": splits, "id": kept}))
    source = ShardBatches([folder, other], [tmp_path / "kept.parquet"])
    features, _ = joined(source)
    owners = dict(zip([*table.ids, *more.ids], [*table.subjects, *more.subjects], strict=True))
    assert source.subjects().tolist() == [owners[name] for name in kept] and len(features) == len(kept)
    assert len(set(source.subjects())) > 3
    assert source.places().tolist() == list(range(0, len(table) + len(more), kept_share))


def test_batches_say_how_many_records_each_ones_subject_has_where_some_are_left_out_too(tmp_path):
    """Of shards of features and of images, and dealt to processes: each row has its own number."""
    rng = np.random.default_rng(0)
    who, features = rng.integers(20, size=53), np.arange(53, dtype=np.float32)[:, None]
    counts = np.bincount(who)[who].astype(np.int32)
    ids, names = np.array([f"{i:05d}" for i in range(53)], object), np.array([f"s{w}" for w in who], object)
    labels = np.zeros(53, np.int32)
    kept = tmp_path / "kept.parquet"
    listed = {"dataset": ["d"] * 18, "split": ["train"] * 18, "id": [str(name) for name in ids[::3]]}
    write_table(kept, pa.table(listed))
    folders = {"features": tmp_path / "features/train", "images": tmp_path / "images/train"}
    written: dict = {kind: [] for kind in folders}
    for number, part in enumerate((slice(0, 20), slice(20, 53))):
        table = shards.FeatureTable(
            ids[part], features[part], labels[part], names[part], shape=(1,), counts=counts[part]
        )
        pixels = np.arange(53, dtype=np.uint8)[part].reshape(-1, 1, 1, 1)
        records = Records(ids[part], pixels, labels[part], names[part], counts=counts[part])
        for (kind, folder), write in zip(folders.items(), (shards.write_shard, data.write_shard), strict=True):
            written[kind].append(folder / f"part-{number:05d}.parquet")
            write(written[kind][-1], table if kind == "features" else records, True)
    shared = {"dataset": "d", "split": "train", "classes": ["a", "b"], "private": True}
    for kind, write in (("features", shards.write_manifest), ("images", data.write_manifest)):
        more = {"features": "f"} if kind == "features" else {}
        write(folders[kind] / "manifest.json", shard_paths=written[kind], **shared, **more)
    sources = [
        ShardBatches([folders["features"]]),
        ShardBatches([folders["features"]], [kept]),
        images.ImageBatches([folders["images"]]),
        images.ImageBatches([folders["images"]], [kept]),
    ]
    for place, source in enumerate(sources):
        for _ in range(2):  # a second pass knows who is left out
            found = list(source.counted())
            rows = np.concatenate([batch[0] for batch in found])[:, 0].astype(int)
            assert len(rows) == (53, 18)[place % 2]
            np.testing.assert_array_equal(np.concatenate([batch[2] for batch in found]), counts[rows])
    for rank in range(3):
        dealt = Dealt(ShardBatches([folders["features"]], [kept]), Ranks(rank, 3))
        found = list(dealt.counted())
        rows = np.concatenate([batch[0] for batch in found])[:, 0].astype(int)
        assert 5 <= len(rows) <= 7 and dealt.rows == 18
        np.testing.assert_array_equal(np.concatenate([batch[2] for batch in found]), counts[rows])


def test_shards_that_do_not_say_whose_records_are_how_many_are_refused(make_split):
    folder, _ = make_split()
    with pytest.raises(StudyError, match="no column 'subject_records'; delete the folder"):
        list(ShardBatches([folder]).counted())
