"""Scores as they are kept: what was written is read, and what is no file of scores is told."""

import numpy as np
import pyarrow as pa
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table, write_table
from dpstudy.evaluation.score_file import read_scores, score_table, scored_records
from dpstudy.features.shards import FeatureTable


def table(n=7, several=False, **more):
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=(n, 3)).astype(np.int8) if several else rng.integers(3, size=n).astype(np.int32)
    return FeatureTable(
        np.array([f"r{i}" for i in range(n)]), rng.normal(size=(n, 4)).astype(np.float32), labels, **more
    )


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_was_written_is_read_seed_by_seed(tmp_path, several, dtype):
    names = np.array(list("abcabca"), dtype=object)
    test = table(several=several, subjects=names, groups={"sex": names[::-1]})
    rng = np.random.default_rng(1)
    scores = {seed: rng.normal(size=(7, 3)).astype(dtype) for seed in (5, 0, 2)}
    path = tmp_path / "scores.parquet"
    write_table(path, score_table(test, scores, ["x", "y", "z"], "made"))
    found = list(read_scores(path))
    assert [given.seed for given in found] == [5, 0, 2]
    for given in found:
        assert given.scores.dtype == dtype and given.labels.dtype == test.labels.dtype
        np.testing.assert_array_equal(given.scores, scores[given.seed])
        np.testing.assert_array_equal(given.labels, test.labels)
        assert given.subjects.tolist() == list("abcabca") and given.groups["sex"].tolist() == list("acbacba")
        assert given.classes == ("x", "y", "z") and given.origin == "made"
    assert read_table(path)["id"].to_pylist() == 3 * test.ids.tolist()


def test_without_persons_and_groups(tmp_path):
    scores = {0: np.zeros((7, 3), np.float32)}
    write_table(tmp_path / "s.parquet", score_table(table(), scores, ["x", "y", "z"], ""))
    (given,) = read_scores(tmp_path / "s.parquet")
    assert given.subjects is None and given.groups == {}


def test_a_file_that_lacks_a_column_is_named(tmp_path):
    path = tmp_path / "scores.parquet"
    write_table(path, pa.table({"seed": [0], "id": ["a"], "label": [1]}))
    with pytest.raises(StudyError, match=r"scores\.parquet: no column 'scores'; restore it, or delete it"):
        list(read_scores(path))
    write_table(path, pa.table({"seed": [0], "id": ["a"], "label": [1], "scores": [[0.5]]}))
    with pytest.raises(StudyError, match=r"scores\.parquet: does not say of what models it is; restore it"):
        list(read_scores(path))
    with pytest.raises(StudyError, match="no such file"):
        list(read_scores(tmp_path / "none.parquet"))


def test_which_records_were_scored_is_told_by_their_names_in_any_order(tmp_path):
    def of(names):
        test, path = table(len(names)), tmp_path / "scores.parquet"
        test = FeatureTable(np.array(names), test.features, test.labels)
        write_table(path, score_table(test, {0: np.zeros((len(names), 3))}, ["x", "y", "z"], ""))
        return scored_records(*read_scores(path))

    all_three, others = of(["a", "b", "c"]), of(["a", "b", "d"])
    assert all_three == of(["c", "a", "b"]) and all_three["records"] == others["records"] == 3
    assert all_three["names"] != others["names"] and of(["a", "b"])["records"] == 2
    assert of(["ab", "c"])["names"] != of(["a", "bc"])["names"]
