import numpy as np
import pyarrow as pa
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_table
from dpstudy.data.records import Records
from dpstudy.features import shards
from dpstudy.features.extract import extract_shard, prepare_manifest
from dpstudy.features.pixels import Pixels

OWN = {"extractor": "precomputed", "location": "mine"}


def extract_all(options, folder, out, count):
    paths = [out / f"part-{index:05d}.parquet" for index in range(count)]
    for index, path in enumerate(paths):
        if not path.exists():
            extract_shard(options, folder, index, path, data_root=out.parent)
    prepare_manifest("mine", folder, paths, out / "manifest.json")
    return shards.load(out)


@pytest.fixture
def bring(tmp_path):
    """A function: save an array as the features of the split train."""

    def save(array):
        (tmp_path / "mine").mkdir(exist_ok=True)
        np.save(tmp_path / "mine" / "train.npy", array)

    return save


@pytest.fixture
def bring_table(tmp_path):
    """A function: save ids and features as parquet."""

    def save(ids, features):
        write_table(tmp_path / "mine" / "train.parquet", pa.table({"id": ids, "features": features}))

    return save


def test_shards_follow_the_image_shards(tmp_path, make_records, make_folder):
    records = make_records(21)
    options = {"extractor": "pixels", "normalise": "l2", "dtype": "float16"}
    table = extract_all(options, make_folder(records, count=3), tmp_path / "out", 3)
    assert list(table.ids) == list(records.ids) and table.features.dtype == np.float16 and table.shape == (1, 8, 8)
    flat = records.images.reshape(21, -1).astype(float)
    np.testing.assert_allclose(table.features, flat / np.linalg.norm(flat, axis=1, keepdims=True), atol=1e-3)
    np.testing.assert_array_equal(table.labels, records.labels)
    assert [entry["rows"] for entry in shards.read_manifest(tmp_path / "out")["shards"]] == [7, 7, 7]


def test_batches_change_nothing(tmp_path, make_records, make_folder, monkeypatch):
    folder = make_folder(make_records(10, (8, 8, 1)))
    options = {"extractor": "scatternet", "normalise": {"group_norm": 27}}
    whole = extract_all(options, folder, tmp_path / "whole", 1).features
    monkeypatch.setattr("dpstudy.features.extract._BATCH", 3)
    np.testing.assert_allclose(
        extract_all(options, folder, tmp_path / "parts", 1).features, whole, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda found: found - found.mean(0), "a record by itself has other features than among others"),
        (lambda found: (found - found.mean(0)) / found.std(0, ddof=1), "a record by itself has other features"),
        (
            lambda found: found.mean(0, keepdims=True),
            r"gave features of shape \(1, 1, 8, 8\), and says \(10, 1, 8, 8\)",
        ),
        (lambda found: found[:-1], "gave features of shape"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the deviation of a single record
def test_an_extractor_that_lets_records_touch_each_other_is_refused(
    tmp_path, make_records, make_folder, monkeypatch, spoil, words
):
    extract, call = "dpstudy.features.pixels.Pixels.__call__", Pixels.__call__
    monkeypatch.setattr(extract, lambda self, images: spoil(call(self, images)))
    refused(tmp_path, make_folder(make_records(10)), f"extractor 'pixels': .*{words}", {"extractor": "pixels"})


def test_a_lost_shard_is_extracted_again_with_the_same_bytes(tmp_path, make_records, make_folder):
    folder, out = make_folder(make_records(20), count=2), tmp_path / "out"
    extract_all({"extractor": "scatternet"}, folder, out, 2)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / "part-00001.parquet").unlink()
    extract_all({"extractor": "scatternet"}, folder, out, 2)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_private_shards_are_readable_by_their_owner_alone(tmp_path, make_records, make_folder):
    extract_all({"extractor": "pixels"}, make_folder(make_records()), tmp_path / "out", 1)
    assert (tmp_path / "out" / "part-00000.parquet").stat().st_mode & 0o077 == 0


def test_brought_arrays_are_joined_by_row_and_tables_by_id(tmp_path, make_records, make_folder, bring, bring_table):
    records = make_records(9)
    folder = make_folder(records, count=2)
    features = np.random.default_rng(0).normal(size=(9, 4))
    bring(features)
    by_row = extract_all(OWN, folder, tmp_path / "rows", 2)
    np.testing.assert_array_equal(by_row.features, features.astype(np.float32))
    (tmp_path / "mine" / "train.npy").unlink()
    shuffled = np.random.default_rng(1).permutation(9)
    bring_table(records.ids[shuffled].tolist(), features[shuffled].tolist())
    by_id = extract_all(OWN, folder, tmp_path / "ids", 2)
    np.testing.assert_array_equal(by_id.features, by_row.features)
    assert list(by_id.ids) == list(records.ids)


def test_labels_without_images_take_brought_features_only(tmp_path, make_records, make_folder, bring):
    records = make_records(6)
    folder = make_folder(Records(records.ids, None, records.labels))
    bring(np.eye(6, dtype=np.float32))
    np.testing.assert_array_equal(extract_all(OWN, folder, tmp_path / "out", 1).features, np.eye(6))
    with pytest.raises(StudyError, match="brings no images"):
        extract_shard({"extractor": "pixels"}, folder, 0, tmp_path / "no.parquet")


def refused(tmp_path, folder, words, options=OWN, shard=0):
    out = tmp_path / "refused" / "part.parquet"
    with pytest.raises(StudyError, match=words) as caught:
        extract_shard(options, folder, shard, out, data_root=tmp_path)
    assert "\n" not in str(caught.value)
    assert not out.parent.exists() or not list(out.parent.iterdir())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_feature_that_is_not_finite_is_named(tmp_path, make_records, make_folder, bring, value):
    features = np.ones((8, 3), np.float32)
    features[6, 1] = value
    bring(features)
    folder = make_folder(make_records(8), count=2)
    refused(tmp_path, folder, r"toy/train, shard 1: a feature is NaN or infinite \(row 2, id 'r0-6'\)", shard=1)
    extract_shard(OWN, folder, 0, tmp_path / "good.parquet", data_root=tmp_path)


def test_an_overflow_of_float16_is_named(tmp_path, make_records, make_folder, bring):
    features = np.ones((8, 3), np.float32)
    features[5, 0] = 70000
    bring(features)
    folder = make_folder(make_records(8))
    refused(tmp_path, folder, r"too large for float16.*row 5", OWN | {"dtype": "float16"})
    extract_shard(OWN, folder, 0, tmp_path / "good.parquet", data_root=tmp_path)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.ones((7, 3), np.float32), "7 rows, but the split has 8"),
        (np.ones((8, 3), np.int64), "int64; they must be floating-point"),
        (np.ones(8, np.float32), r"must be \(rows, dimensions\)"),
        (np.array([["x"] * 3] * 8, dtype=object), "or a pickled .npy file"),
    ],
)
def test_an_array_of_the_wrong_kind_is_refused(tmp_path, make_records, make_folder, bring, array, words):
    bring(array)
    refused(tmp_path, make_folder(make_records(8)), words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda ids, rows: (ids[:-1], rows[:-1]), "no features for the id 'r0-7'"),
        (lambda ids, rows: ([*ids, "who"], [*rows, rows[0]]), "'who' is not in this split"),
        (lambda ids, rows: ([*ids, ids[2]], [*rows, rows[0]]), "'r0-2' stands twice"),
        (lambda ids, rows: (ids, [*rows[:-1], [1.0]]), "row 7 has 1 features, row 0 has 3"),
        (lambda ids, rows: (ids, [*rows[:-1], None]), "row 7 has no features"),
        (lambda ids, rows: (ids, [*rows[:-1], [1.0, None, 1.0]]), "NaN or infinite .row 7"),
        (lambda ids, rows: (ids, [[1, 2]] * len(ids)), "int64; they must be floating-point"),
        (lambda ids, rows: (ids, [1.0] * len(ids)), "a list of numbers a row"),
    ],
)
def test_a_table_that_does_not_fit_the_data_is_refused(tmp_path, make_records, make_folder, bring_table, change, words):
    records = make_records(8)
    bring_table(*change(records.ids.tolist(), [[1.0, 2.0, 3.0]] * 8))
    refused(tmp_path, make_folder(records), words)


def test_features_that_are_missing_or_there_twice_are_refused(tmp_path, make_records, make_folder, bring, bring_table):
    records = make_records(8)
    folder = make_folder(records)
    refused(tmp_path, folder, "neither train.parquet nor train.npy")
    bring(np.ones((8, 2)))
    bring_table(records.ids.tolist(), [[1.0]] * 8)
    refused(tmp_path, folder, "keep one")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"extractor": "pixels", "normalise": {"group_norm": 2}}, "do not divide"),
        ({"extractor": "precomputed"}, "location"),
    ],
)
def test_an_option_that_does_not_exist_is_refused(tmp_path, make_records, make_folder, options, words):
    refused(tmp_path, make_folder(make_records()), words, options)


def test_a_shard_that_does_not_exist_is_refused(tmp_path, make_records, make_folder):
    refused(tmp_path, make_folder(make_records()), "there is no shard 1", {"extractor": "pixels"}, shard=1)
