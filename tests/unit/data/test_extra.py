"""A data set of a chosen size, and one that a second source enlarges: exactly those records, in train alone."""

import numpy as np
import pytest

from dpstudy.data import shards
from dpstudy.data.names import CHOSEN, NUMBERED, caveats
from dpstudy.data.prepare import prepare_manifest, prepare_shard
from dpstudy.data.readers import open_reader

DIGITS = {"reader": "digits", "splits": {"test": 0.2, "validation": 0.1}, "shards": 2}
EXTRA = {"reader": "arrays", "location": "more", "records": 120}
COUNT = 300


@pytest.fixture
def more(tmp_path):
    """A folder `more` of made-up 8 x 8 images: image i is all (i % 251), its label i % 10."""
    folder = tmp_path / "more"
    folder.mkdir()
    images = np.broadcast_to((np.arange(COUNT) % 251).astype(np.uint8)[:, None, None, None], (COUNT, 8, 8, 1))
    np.save(folder / "all_images.npy", images)
    np.save(folder / "all_labels.npy", np.arange(COUNT) % 10)
    return folder


def prepared(folder, options, split):
    paths = [folder / split / f"part-{shard:05d}.parquet" for shard in range(options["shards"])]
    for shard, path in enumerate(paths):
        prepare_shard("digits", options, folder, split, shard, path, True)
    prepare_manifest("digits", options, folder, split, paths, folder / split / "manifest.json", True)
    return shards.load(folder / split)


def test_train_and_validation_have_exactly_the_records_that_were_asked_for(tmp_path):
    splits = DIGITS["splits"] | {"records": 700}
    found = {split: prepared(tmp_path, DIGITS | {"splits": splits}, split) for split in ("train", "validation", "test")}
    assert len(found["train"]) + len(found["validation"]) == 700
    whole = prepared(tmp_path / "whole", DIGITS, "test")
    assert list(found["test"].ids) == list(whole.ids)


def test_extra_records_join_train_and_no_other_split(tmp_path, more):
    plain = {split: prepared(tmp_path / "plain", DIGITS, split) for split in ("train", "validation", "test")}
    found = {split: prepared(tmp_path, DIGITS | {"extra": EXTRA}, split) for split in plain}
    for split in ("validation", "test"):
        assert list(found[split].ids) == list(plain[split].ids)
    train = found["train"]
    added = np.array([name.startswith("extra-") for name in train.ids])
    assert added.sum() == 120 and set(train.ids[~added]) == set(plain["train"].ids)
    levels, labels = train.images[added][:, 0, 0, 0].tolist(), train.labels[added].tolist()
    assert (train.images[added] == train.images[added][:, :1, :1]).all()
    records = set(zip(levels, labels, strict=True))
    assert len(records) == 120 and records <= {(row % 251, row % 10) for row in range(COUNT)}, "each with its own label"


def test_one_extra_record_less_lets_one_other_in(tmp_path, more):
    """Where 120 of them are taken, as `CHOSEN` says; and likewise of a data set that is the user's own as a whole."""
    own = {"reader": "arrays", "location": "more", "splits": {"test": 0.2, "records": 100}, "classes": 10, "shards": 1}
    images, labels = (np.load(more / f"all_{what}.npy") for what in ("images", "labels"))
    options = (DIGITS | {"extra": EXTRA}, own)

    def chosen(each):
        train = prepared(tmp_path, each, "train")
        return {image.tobytes() + bytes([label]) for image, label in zip(train.images, train.labels, strict=True)}

    before = [chosen(each) for each in options]
    for row in range(4):
        np.save(more / "all_images.npy", np.delete(images, row, 0))
        np.save(more / "all_labels.npy", np.delete(labels, row, 0))
        for each, all_of_them in zip(options, before, strict=True):
            left = chosen(each)
            assert len(all_of_them - left) == len(left - all_of_them) <= 1


def test_more_extra_records_contain_fewer(tmp_path, more):
    def chosen(count):
        options = DIGITS | {"extra": EXTRA | {"records": count}}
        return set(open_reader("digits", options, tmp_path).rows("extra").ids)

    assert chosen(50) < chosen(200) < chosen(COUNT) and len(chosen(COUNT)) == COUNT
    without = {key: value for key, value in EXTRA.items() if key != "records"}
    assert set(open_reader("digits", DIGITS | {"extra": without}, tmp_path).rows("extra").ids) == chosen(COUNT)


def test_extra_images_of_another_shape_or_too_few_are_refused(tmp_path, more, refused):
    refused(
        DIGITS | {"extra": EXTRA | {"records": 301}}, tmp_path, "extra: records is 301, but there are only 300 rows"
    )
    np.save(more / "all_images.npy", np.zeros((COUNT, 9, 8), np.uint8))
    prepare_shard("ok", DIGITS | {"extra": EXTRA}, tmp_path, "test", 0, tmp_path / "x.parquet", True)
    one = DIGITS | {"extra": EXTRA, "shards": 1}
    refused(one, tmp_path, "extra: its records have images (9, 8, 1)", "those of the data set images (8, 8, 1)")


def test_extra_classes_must_be_the_data_sets(tmp_path, refused):
    for name in "ab":
        (tmp_path / "folder" / name).mkdir(parents=True)
    extra = {"reader": "image_folder", "location": "folder"}
    refused(DIGITS | {"extra": extra}, tmp_path, "the class '0' has no folder here; make one, or mend `classes`")
    refused(DIGITS | {"extra": extra | {"classes": ["a", "b"]}}, tmp_path, "no image in any of its class folders")


@pytest.mark.parametrize("images", [np.zeros((5, 4, 4), np.uint8), np.zeros((5, 4, 4, 3), np.uint8)])
def test_arrays_are_read_as_they_were_saved(tmp_path, images):
    images = np.random.default_rng(0).integers(0, 256, images.shape, np.uint8)
    for pool, part in (("train", slice(0, 3)), ("test", slice(3, 5))):
        np.save(tmp_path / f"{pool}_images.npy", images[part])
        np.save(tmp_path / f"{pool}_labels.npy", np.arange(5)[part] % 2)
    reader = open_reader("arrays", {"reader": "arrays", "location": ".", "classes": 2}, tmp_path)
    found = reader.read("train", np.array([2, 0]))
    assert list(found.ids) == ["train-00002", "train-00000"] and list(found.labels) == [0, 0]
    np.testing.assert_array_equal(found.images, images[[2, 0]].reshape(2, 4, 4, -1))
    assert len(reader.rows("test")) == 2


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        (np.zeros((4, 8, 8), np.uint8), [0, 1, 0], "3 labels for 4 images"),
        (np.zeros((3, 8, 8), np.float32), [0, 1, 0], "not (3, 8, 8) float32"),
        (np.zeros((3, 64), np.uint8), [0, 1, 0], "not (3, 64) uint8"),
        (np.array([{}, {}, {}], dtype=object), [0, 1, 0], "pickled .npy file"),
        (np.zeros((3, 8, 8), np.uint8), [0, 1, 2], "row 2 has label 2"),
        (None, [0, 1, 0], "all_images.npy: no such file; save images and labels with numpy.save"),
    ],
)
def test_arrays_that_cannot_be_read_are_refused(tmp_path, refused, images, labels, words):
    if images is not None:
        np.save(tmp_path / "all_images.npy", images, allow_pickle=True)
    np.save(tmp_path / "all_labels.npy", np.array(labels))
    refused({"reader": "arrays", "location": ".", "classes": 2, "splits": {"test": 0}}, tmp_path, words)


def test_a_truncated_array_is_refused(tmp_path, more, refused):
    content = (more / "all_images.npy").read_bytes()
    (more / "all_images.npy").write_bytes(content[:-100])
    refused(DIGITS | {"extra": EXTRA}, tmp_path, "all_images.npy: damaged or truncated")


def test_what_a_ledger_must_say_of_a_data_set():
    assert caveats({}) == [] and caveats({"splits": {"left_out": 0.5}, "extra": {}}) == []
    assert caveats({"not_accounted": ["Labels leak."], "extra": {"records": 5}}) == ["Labels leak.", CHOSEN]
    assert caveats({"splits": {"records": 5}}) == [CHOSEN]


@pytest.mark.parametrize(
    ("options", "kept", "named"),
    [
        ({"reader": "arrays", "splits": {"validation": 0.1}}, True, False),
        ({"reader": "arrays", "splits": {"validation": 0}}, False, False),
        ({"reader": "labels", "unit": "subject"}, True, True),
        ({"reader": "labels", "beyond": "truncate", "positives": 2}, True, True),
        ({"reader": "image_table", "mosaic": "all.png", "splits": {"test": 0.3}}, True, False),
        ({"reader": "image_table", "path_column": "path", "splits": {"test": 0.3}, "unit": "subject"}, False, False),
        ({"reader": "idx", "splits": {"validation": 0.1}}, False, False),
    ],
)
def test_ledgers_say_where_numbers_decide_about_somebodys_own_records(options, kept, named):
    """Where row numbers are kept (spending.numbered), and where records are named by what they hold."""
    assert (NUMBERED in caveats(options, numbered=True)) == kept
    assert (NUMBERED in caveats(options)) == named
