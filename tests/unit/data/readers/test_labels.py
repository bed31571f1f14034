import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.readers import open_reader

OPTIONS = {"reader": "labels", "location": ".", "classes": ["a", "b", "c"]}


def write(path, **columns):
    parquet.write_table(pa.table(columns), path)


def test_npy_of_both_pools(tmp_path):
    np.save(tmp_path / "train_labels.npy", np.array([2, 0, 1], np.uint8))
    np.save(tmp_path / "test_labels.npy", np.array([1, 1], np.int64))
    reader = open_reader("labels", OPTIONS, tmp_path)
    assert reader.pools == ("train", "test") and not reader.multi_label
    records = reader.read("train", np.array([2, 0]))
    assert records.images is None and records.labels.dtype == np.int32
    np.testing.assert_array_equal(records.labels, [1, 2])
    assert list(records.ids) == ["train-00002", "train-00000"]


@pytest.mark.parametrize("label", [[2, 0, 1], ["c", "a", "b"]])
def test_parquet_with_ids_subjects_and_groups(tmp_path, label):
    extra = {"subject": ["s", "s", "t"], "group_sex": ["F", "F", "M"], "features": [[0.5], [1.0], [2.0]]}
    write(tmp_path / "all.parquet", id=["x", "y", "z"], label=label, **extra)
    reader = open_reader("labels", OPTIONS, tmp_path)
    assert reader.pools == ("all",) and list(reader.rows("all").subjects) == ["s", "s", "t"]
    records = reader.read("all", np.array([2, 1, 0]))
    assert list(records.ids) == ["z", "y", "x"] and list(records.groups["sex"]) == ["M", "F", "F"]
    np.testing.assert_array_equal(records.labels, [1, 0, 2])


def test_multi_labels_from_npy_and_parquet(tmp_path):
    matrix = np.array([[1, 0, 1], [0, 0, 0]])
    np.save(tmp_path / "train_labels.npy", matrix)
    write(tmp_path / "test.parquet", labels=matrix.tolist())
    reader = open_reader("labels", {**OPTIONS, "classes": 3}, tmp_path)
    assert reader.multi_label and reader.classes == ["0", "1", "2"]
    for pool in ("train", "test"):
        records = reader.read(pool, np.arange(2))
        assert records.labels.dtype == np.int8
        np.testing.assert_array_equal(records.labels, matrix)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": [0, 1, 3]}, "row 2 has label 3"),
        ({"label": [0, -1, 2]}, "row 1 has label -1"),
        ({"label": [0, None, 2]}, "row 1: no value in the column 'label'"),
        ({"label": [None, 1, None]}, "row 0: no value in the column 'label' (the first of 2 rows); fill it in"),
        ({"label": ["a", "d", "b"]}, "row 1: unknown class 'd' in the column 'label'; the classes are"),
        ({"label": ["a", "d", "e"]}, "row 1: unknown class 'd' in the column 'label' (the first of 2 rows)"),
        ({"label": [0.5, 1.0, 2.0]}, "row 0: unknown class '0.5'"),
        ({"labels": [[1, 0, 0], [1, 0]]}, "row 1 has the labels"),
        ({"labels": [[1, 0, 0], None]}, "row 1 has the labels None"),
        ({"labels": [[1, 0, 0], [1, 2, 0]]}, "row 1 has 2 for 'b'"),
        ({"label": [0, 1], "id": ["x", "x"]}, "rows 0 and 1 have the same id 'x'"),
        ({"label": [0, 1], "subject": ["x", ""]}, "row 1: no value in the column 'subject'"),
        ({"id": ["x", "y"]}, "no column 'label'"),
    ],
)
def test_bad_parquet_is_refused(tmp_path, refused, columns, message):
    write(tmp_path / "all.parquet", **columns)
    refused({**OPTIONS, "splits": {"test": 0.3}}, tmp_path, "all.parquet", message)


def test_bad_npy_and_missing_files_are_refused(tmp_path, refused):
    file = tmp_path / "train_labels.npy"
    refused(OPTIONS, tmp_path, "train_labels.npy: no such file", "train.parquet")
    np.save(tmp_path / "test_labels.npy", np.array([0]))
    for array, message in (
        (np.array([0, 3]), "row 1 has label 3"),
        (np.zeros((2, 2), int), "(2, 2)"),
        (np.array([0.5, 1.0]), "float64"),
        (np.array([], int), "no rows"),
        (np.array(0), "one integer a row"),
    ):
        np.save(file, array)
        refused(OPTIONS, tmp_path, "train_labels.npy", message)
    np.save(file, np.zeros((2, 3), int))
    with pytest.raises(StudyError, match="differ in the kind of labels"):
        open_reader("labels", OPTIONS, tmp_path)
