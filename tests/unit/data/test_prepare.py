import hashlib
import shutil

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_digits

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_table
from dpstudy.data import shards
from dpstudy.data.names import split_names
from dpstudy.data.prepare import data_root, prepare_manifest, prepare_shard
from dpstudy.data.reader import Rows
from dpstudy.data.readers import digits, open_reader
from dpstudy.data.records import Records
from dpstudy.schema.reading import schema
from tests.unit.data.conftest import OWN
from tests.unit.data.conftest import prepare as prepared_own

DIGITS = {"reader": "digits", "splits": {"test": 0.2, "validation": 0.1}, "shards": 3}


def prepare(folder, options, root, split, name="digits", private=True):
    paths = [folder / split / f"part-{shard:05d}.parquet" for shard in range(options.get("shards", 1))]
    for shard, path in enumerate(paths):
        prepare_shard(name, options, root, split, shard, path, private)
    prepare_manifest(name, options, root, split, paths, folder / split / "manifest.json", private)
    return shards.load(folder / split)


def test_digits_end_to_end(tmp_path):
    splits = {split: prepare(tmp_path, DIGITS, tmp_path, split) for split in split_names(DIGITS)}
    assert list(splits) == ["train", "validation", "test"]
    assert sum(len(records) for records in splits.values()) == 1797
    bunch = load_digits()
    seen = set()
    for records in splits.values():
        for name, image, label in zip(records.ids, records.images, records.labels, strict=True):
            row = int(name.removeprefix("digits-"))
            np.testing.assert_array_equal(image[..., 0], np.floor(bunch.images[row] * 255 / 16 + 0.5))
            assert label == bunch.target[row]
            seen.add(row)
    assert len(seen) == 1797
    manifest = shards.read_manifest(tmp_path / "train")
    assert manifest["classes"] == list("0123456789") and manifest["image_shape"] == [8, 8, 1]
    rows = manifest["rows"]
    assert [shard["rows"] for shard in manifest["shards"]] == [
        (shard + 1) * rows // 3 - shard * rows // 3 for shard in range(3)
    ]


def test_the_number_of_shards_changes_no_row_and_reruns_are_byte_identical(tmp_path):
    three = prepare(tmp_path / "three", DIGITS, tmp_path, "test")
    one = prepare(tmp_path / "one", {**DIGITS, "shards": 1}, tmp_path, "test")
    np.testing.assert_array_equal(three.ids, one.ids)
    np.testing.assert_array_equal(three.images, one.images)
    prepare(tmp_path / "again", DIGITS, tmp_path, "test")
    for file in (tmp_path / "three" / "test").iterdir():
        again = tmp_path / "again" / "test" / file.name
        assert hashlib.sha256(file.read_bytes()).digest() == hashlib.sha256(again.read_bytes()).digest()


def test_pools_that_share_subjects_are_merged_over_all_shards(tmp_path):
    for pool, count in (("train", 60), ("test", 25)):
        ids, subjects = [f"{pool}{row}" for row in range(count)], [f"p{row // 2}" for row in range(count)]
        columns = {"id": ids, "label": [row % 2 for row in range(count)], "subject": subjects}
        write_table(tmp_path / f"{pool}.parquet", pa.table(columns))
    options = {"reader": "labels", "location": ".", "classes": 2, "shards": 4, "splits": {"test": 0.4}}
    train, test = (
        prepare(tmp_path / "out", {**options, "unit": "subject", "per_subject": 4}, tmp_path, split)
        for split in ("train", "test")
    )
    names = [*train.ids, *test.ids]
    assert len(names) == len(set(names)) == 85
    assert not set(train.subjects) & set(test.subjects)
    for records in (train, test):
        assert {name.rstrip("0123456789") for name in records.ids} == {"train", "test"}
        for name, label in zip(records.ids, records.labels, strict=True):
            assert label == int(name[-1]) % 2


@pytest.mark.parametrize(
    ("splits", "private", "names"),
    [
        ({"test": 0.2}, True, ("train", "test")),
        ({"test": 0.2, "validation": 0.1}, True, ("train", "validation", "test")),
        (None, True, ("train", "test")),
        ({"test": 0}, True, ("train",)),
        ({"validation": 0.1}, False, ("train", "validation")),
        ({"test": 0.2, "validation": 0}, False, ("train", "test")),
        (None, False, ("train",)),
    ],
)
def test_split_names_without_opening_the_data(splits, private, names):
    assert split_names({"reader": "no such", "splits": splits}, private) == names


def test_public_sets_have_no_test_split_by_default(tmp_path):
    options = {"reader": "digits"}
    assert len(prepare(tmp_path, options, tmp_path, "train", private=False)) == 1797
    with pytest.raises(StudyError, match="data set 'digits': splits: .* give the fraction `test`"):
        prepare(tmp_path, options, tmp_path, "train", private=True)


def test_bad_options_are_refused(tmp_path, refused):
    refused({**DIGITS, "reader": "digit"}, tmp_path, "reader 'digit' does not exist", "image_folder")
    refused({**DIGITS, "shards": 2000}, tmp_path, "rows for 2000 shards")
    refused({**DIGITS, "unit": "subject"}, tmp_path, "give `subject_column`")
    refused({**DIGITS, "unit": "person"}, tmp_path, "unit: 'person'")
    refused({**DIGITS, "splits": {"test": 0.00001}}, tmp_path, "no row falls into the split 'test'")
    refused({**DIGITS, "splits": {"test": 0.2}}, tmp_path, "no split 'validation'", split="validation")
    with pytest.raises(StudyError, match="shard 3 does not exist"):
        prepare_shard("digits", DIGITS, tmp_path, "train", 3, tmp_path / "x.parquet", True)


class _Faulty:
    """A reader that breaks its promise: one label is out of range."""

    classes, multi_label, pools = ["a", "b"], False, ("all",)

    def rows(self, pool):
        return Rows(np.array([f"id{row}" for row in range(50)], dtype=object))

    def read(self, pool, indices):
        labels = np.array([2 if index == 20 else 0 for index in indices], np.int32)
        return Records(self.rows(pool).ids[indices], np.zeros((len(indices), 2, 2, 1), np.uint8), labels)


def test_a_label_out_of_range_never_reaches_a_shard(tmp_path, refused, monkeypatch):
    monkeypatch.setattr("dpstudy.data.prepare.open_reader", lambda name, options, root: _Faulty())
    refused({"splits": {"test": 0}}, tmp_path, "row 20 has label 2")
    monkeypatch.setattr(_Faulty, "classes", ["a"])
    refused({"splits": {"test": 0}}, tmp_path, "nothing to tell apart: 'a' is the only class; name two or more")


def test_a_reader_without_all_that_readers_offer_is_told_what_is_lacking(tmp_path, monkeypatch):
    monkeypatch.setattr(digits, "open", lambda options, root: _Bare())
    with pytest.raises(StudyError, match="reader 'digits': .*_Bare, has no multi_label and no rows; data/reader.py"):
        open_reader("digits", {}, tmp_path)


class _Bare:
    classes, pools, read = ["a", "b"], ("all",), None


@pytest.mark.parametrize("tolerated", [0.0, 0.5])
@pytest.mark.parametrize("what", ["ids", "subjects"])
def test_a_reader_that_gives_other_records_than_asked_for_is_refused(tmp_path, refused, monkeypatch, what, tolerated):
    class Swapped:
        classes, multi_label, pools = ["a", "b"], False, ("all",)

        def rows(self, pool):
            names = np.array([f"r{row}" for row in range(20)], dtype=object)
            return Rows(names, names)

        def read(self, pool, indices):
            found = {"ids": self.rows(pool).ids[indices], "subjects": self.rows(pool).ids[indices]}
            found[what] = found[what][::-1]
            return Records(
                images=np.zeros((len(indices), 2, 2, 1), np.uint8), labels=np.zeros(len(indices), "i4"), **found
            )

    monkeypatch.setattr("dpstudy.data.prepare.open_reader", lambda *given: Swapped())
    options = {"unit": "subject", "splits": {"test": 0.5}, "unreadable": tolerated}
    refused(options, tmp_path, f"its reader gives records of the pool 'all' with other {what} than its `rows` say")


def test_a_full_disk_leaves_no_shard(tmp_path, monkeypatch):
    def full_disk(*arguments, **options):
        arguments[1].write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full_disk)
    with pytest.raises(StudyError, match="the disk is full"):
        prepare_shard("digits", DIGITS, tmp_path, "train", 0, tmp_path / "out" / "part-00000.parquet", True)
    assert list((tmp_path / "out").iterdir()) == []


def test_the_environment_overrides_the_data_root(monkeypatch):
    monkeypatch.delenv("DPSTUDY_DATA", raising=False)
    assert str(data_root("data")) == "data"
    monkeypatch.setenv("DPSTUDY_DATA", "elsewhere")
    assert str(data_root("data")) == "elsewhere"


def test_every_registered_reader_can_be_imported(tmp_path):
    for name in schema("config")["$defs"]["source"]["x-readers"]:
        options = {"reader": name, "location": "nowhere"}
        if name in ("digits", "glyphs", "dead_leaves", "strokes", "cutouts", "scenes"):  # made, not read
            assert open_reader(name, options, tmp_path).pools == ("all",)
        else:
            with pytest.raises(StudyError):
                open_reader(name, options, tmp_path)


def test_a_records_person_counts_only_by_its_own_records(own):
    """What a person's images count for is averaged by it; nobody else's goes into the number."""
    root, write = own
    options = {"contributions": "average", "per_subject": 2}

    def counts(split):
        records = shards.load(prepared_own(root, split, **options))
        return {name: (records.subjects == name).sum() for name in records.subjects}, records

    there, records = counts("train")
    assert records.counts.tolist() == [there[name] for name in records.subjects] and set(records.counts) == {2}
    first, second = records.subjects[0], next(name for name in records.subjects if name != records.subjects[0])
    rows = {name: [f"{row}.png" for row in range(24) if f"p{row // 2}" == name] for name in (first, second)}
    write(rows[first][0], *rows[second])
    left, fewer = counts("train")
    assert left == {name: count - (name == first) for name, count in there.items() if name != second}
    assert fewer.counts.tolist() == [1 if name == first else 2 for name in fewer.subjects]
    assert counts("test")[1].counts is None
    shutil.rmtree(root / "out")
    assert shards.load(prepared_own(root, "train", per_subject=2)).counts is None


def test_images_that_cannot_be_read_stay_in_the_number(own):
    root, _ = own
    records = shards.load(prepared_own(root, "train", contributions="average"))
    lost = records.ids[0]
    (root / "own" / str(lost)).write_bytes(b"no image")
    shutil.rmtree(root / "out")
    with_holes = shards.load(prepared_own(root, "train", contributions="average", unreadable=0.5))
    assert len(with_holes) == len(records) - 1 and set(with_holes.counts) == {2}


def test_images_that_are_left_out_are_told_and_counted(own, caplog):
    root, _ = own
    caplog.set_level("NOTICE", "dpstudy")
    whole = len(shards.load(prepared_own(root, "train", unreadable=0.5)))
    assert not caplog.records
    assert shards.unreadable_in([shards.read_manifest(root / "out/train")]) == {"own": (0, whole)}
    plain = (root / "out/train/manifest.json").read_bytes()
    assert b"unreadable" not in plain, "as earlier versions wrote it"
    lost = shards.load(root / "out/train").ids[:2]
    for name in lost:
        (root / "own" / str(name)).write_bytes(b"no image")
    shutil.rmtree(root / "out")
    folders = [prepared_own(root, split, unreadable=0.5) for split in ("train", "test")]
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "NOTICE"]
    assert said.startswith(f"2 of {whole} images cannot be read, and are left out; the first: ") and lost[0] in said
    assert shards.unreadable_in([shards.read_manifest(folder) for folder in folders]) == {"own": (2, 24)}


def test_shards_with_and_without_holes_are_of_one_split(own):
    root, _ = own
    first = shards.load(prepared_own(root, "train")).ids[0]
    (root / "own" / str(first)).write_bytes(b"no image")
    options, out = OWN | {"shards": 2, "unreadable": 0.5}, root / "two"
    with_holes = prepare(out, options, root, "train", "own")
    (manifest,) = [shards.read_manifest(out / "train")]
    assert [shard.get("unreadable") for shard in manifest["shards"]] == [1, None]
    assert first not in with_holes.ids and len(with_holes) == manifest["rows"]


def test_an_image_that_looks_odd_is_told(own):
    from dpstudy.data.odd import odd_look

    rng, grey = np.random.default_rng(0), {"window": [2048, 4096]}
    usual = rng.integers(1, 255, (20, 20, 1)).astype(np.uint8)
    white, black = usual.copy(), usual.copy()
    white[:12], black[:19] = 255, 0
    assert list(odd_look(grey, usual)) == list(odd_look({}, white)) == list(odd_look({"window": "file"}, white)) == []
    (told,) = odd_look(grey, white)
    assert "60 % of the first image's pixels are white" in told and "is it the window of such images?" in told
    assert len(list(odd_look(grey, black))) == 1 and not list(odd_look(grey, np.maximum(black, 7)))
    assert list(odd_look({}, np.repeat(usual, 3, 2))) == [
        "channels: 3, and the first image is grey; 1 takes a third of the time"
    ]
    assert not list(odd_look({}, rng.integers(0, 255, (20, 20, 3))))
