"""A user's own records without names are named by what they hold; all others keep the names that they have."""

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table
from dpstudy.data import own_names
from dpstudy.data.own import with_own_names
from dpstudy.data.prepare import prepare_shard
from dpstudy.data.reader import Rows
from dpstudy.data.readers import open_reader
from dpstudy.data.records import Records

OPTIONS = {"reader": "arrays", "location": ".", "classes": 3}


class Held:
    """A reader that has its records in memory, under row numbers."""

    classes, multi_label, pools = ["a", "b", "c"], False, ("all",)

    def __init__(self, **changes):
        same = np.array(["x"] * 3, dtype=object)
        held = {"images": np.zeros((3, 2, 2, 1), np.uint8), "labels": np.zeros(3, np.int32), "subjects": same}
        held |= {"groups": {"sex": same, "age": same}} | changes
        self._rows = Rows.numbered("all", 3, held["subjects"])
        self.records = Records(self._rows.ids, **held)

    def rows(self, pool):
        return self._rows

    def read(self, pool, indices):
        return self.records.take(indices)


def digest(held):
    return own_names.OwnNames(held).rows("all").ids[0].split("-")[1]


def test_all_that_a_record_holds_is_in_its_name():
    text = np.array(["y", "x", "x"], dtype=object)
    image, wide = np.zeros((3, 2, 2, 1), np.uint8), np.zeros((3, 1, 4, 1), np.uint8)
    image[0, 0, 0] = 1
    found = [
        Held(),
        Held(images=image),
        Held(images=wide),
        Held(labels=np.array([1, 0, 0], np.int32)),
        Held(labels=np.zeros((3, 1), np.int8)),
        Held(subjects=text),
        Held(subjects=None),
        Held(groups={"sex": text, "age": np.array(["x"] * 3, dtype=object)}),
        Held(groups={"sex": np.array(["x"] * 3, dtype=object), "age": text}),
        Held(groups={}),
    ]
    assert len({digest(held) for held in found}) == len(found)


def test_equal_records_are_counted():
    names = own_names.OwnNames(Held()).rows("all").ids
    assert len(names[0].split("-")[1]) == 32 and list(names) == [names[0], f"{names[0]}-1", f"{names[0]}-2"]


def test_images_that_change_while_they_are_read_are_refused():
    held = Held()
    reader = own_names.OwnNames(held)
    assert list(reader.read("all", np.array([2, 0])).ids) == list(reader.rows("all").ids[[2, 0]])
    held.records.images[1] += 1
    reader.read("all", np.array([2, 0]))
    with pytest.raises(StudyError, match="row 1 of the pool 'all' has changed while it was read; start again"):
        reader.read("all", np.array([0, 1]))


@pytest.mark.parametrize("numbered", [False, True])
def test_each_subject_has_one_name_whichever_names_records_have(numbered):
    """Of whatever reader, one of another package too."""
    held = Held(subjects=np.array(["17", "17.0", " 17"], dtype=object))
    reader = own_names.OwnNames(held, numbered)
    assert reader.rows("all").subjects.tolist() == ["17"] * 3 == reader.read("all", np.arange(3)).subjects.tolist()
    assert (reader.rows("all").ids.tolist() == held.rows("all").ids.tolist()) == numbered


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for pool in ("train", "test"):
        np.save(tmp_path / f"{pool}_images.npy", rng.integers(0, 256, (6, 4, 4), np.uint8))
        np.save(tmp_path / f"{pool}_labels.npy", np.arange(6) % 3)
    return tmp_path


@pytest.mark.parametrize(("private", "numbered"), [(True, False), (True, True), (False, False)])
def test_which_names_shards_have(folder, private, numbered):
    """Public sets keep numbers, and data sets that the book of secure noise knows by them."""
    path = folder / "part.parquet"
    options = OPTIONS | {"splits": {"test": 0}} if private else OPTIONS
    prepare_shard("d", options, folder, "train", 0, path, private, numbered=numbered)
    ids = read_table(path).column("id").to_pylist()
    kept = [f"train-{row:05d}" for row in range(6)]
    if private and not numbered:
        assert not set(ids) & set(kept) and [name.split("-")[0] for name in ids] == ["train"] * 6
    else:
        assert ids == kept


@pytest.mark.parametrize(
    ("options", "main", "extra"),
    [
        ({"reader": "idx"}, False, None),
        ({"reader": "idx", "test_split": "public"}, False, None),
        ({"reader": "idx", "test_split": "private"}, True, None),
        ({"reader": "arrays", "test_split": "public"}, True, None),
        ({"reader": "cifar", "extra": {"reader": "arrays"}}, False, True),
        ({"reader": "cifar", "extra": {"reader": "mosaics"}}, False, False),
        ({"reader": "cifar", "extra": {"reader": "mosaics"}, "test_split": "private"}, True, True),
    ],
)
def test_whose_records_are_named_so(options, main, extra):
    told = with_own_names(options)
    assert told["own_names"] == main
    assert told.get("extra", {}).get("own_names") == extra


def test_labels_alone_keep_their_numbers_since_features_are_brought_by_them(tmp_path):
    np.save(tmp_path / "all_labels.npy", np.arange(4) % 3)
    reader = open_reader("labels", with_own_names(OPTIONS | {"reader": "labels"}), tmp_path)
    assert list(reader.rows("all").ids) == [f"all-{row:05d}" for row in range(4)]
