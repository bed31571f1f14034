"""The same records have the same content however they are stored; each value counts."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from dpstudy.core.contents import content_of
from dpstudy.core.errors import StudyError
from dpstudy.core.files import sha256
from dpstudy.features import shards

ROWS = 12


def table_of(multi=False, **changes):
    rng = np.random.default_rng(0)
    labels = (
        (np.arange(2 * ROWS).reshape(ROWS, 2) % 2).astype(np.int8) if multi else np.arange(ROWS, dtype=np.int32) % 3
    )
    arrays = {
        "ids": np.array([f"r{i}" for i in range(ROWS)], dtype=object),
        "features": rng.standard_normal((ROWS, 5)).astype(np.float32),
        "labels": labels,
        "subjects": np.array([f"p{i // 2}" for i in range(ROWS)], dtype=object),
        "groups": {"sex": np.array(["f", "m"] * (ROWS // 2), dtype=object)},
        "shape": (5,),
    }
    return shards.FeatureTable(**(arrays | changes))


def written(folder, table, cuts=(0, 5, ROWS), classes=("a", "b", "c")):
    paths = []
    for number, (start, stop) in enumerate(zip(cuts, cuts[1:], strict=False)):
        paths.append(folder / f"part-{number:05d}.parquet")
        shards.write_shard(paths[-1], table.take(np.arange(start, stop)), private=True)
    manifest = folder / "manifest.json"
    told = {"dataset": "toy", "features": "f", "split": "train", "private": True}
    shards.write_manifest(manifest, shard_paths=paths, classes=list(classes), **told)
    return manifest


@pytest.mark.parametrize("multi", [False, True])
def test_how_records_are_stored_plays_no_part(tmp_path, multi):
    table = table_of(multi)
    first, *others = (
        written(tmp_path / str(number), table, cuts)
        for number, cuts in enumerate([(0, 5, ROWS), (0, ROWS), (0, 1, 2, ROWS)])
    )
    assert {content_of(path) for path in others} == {content_of(first)}
    shard = first.parent / "part-00001.parquet"
    plain = parquet.read_table(shard)
    parquet.write_table(plain, shard, compression="gzip", row_group_size=2)  # slices of arrays, too
    manifest = json.loads(first.read_text())
    before = content_of(others[0])
    with pytest.raises(StudyError, match="its SHA-256 differs from the manifest's"):
        content_of(first)
    manifest["shards"][1]["sha256"] = sha256(shard)
    first.write_text(json.dumps(manifest | {"version": 2}))
    assert content_of(first) == before


def altered(array, value):
    copy = array.copy()
    copy[(7, *(0,) * (copy.ndim - 1))] = value
    return copy


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("what", ["ids", "features", "labels", "subjects", "groups", "missing", "order", "classes"])
def test_each_value_counts(tmp_path, what, multi):
    table = table_of(multi)
    values = {
        "ids": {"ids": altered(table.ids, "r700")},
        "features": {"features": altered(table.features, np.nextafter(table.features[7, 0], np.float32(9)))},
        "labels": {"labels": altered(table.labels, 1 if multi else 2)},
        "subjects": {"subjects": altered(table.subjects, "p9")},
        "groups": {"groups": {"sex": altered(table.groups["sex"], "")}},
        "missing": {"groups": {"sex": altered(table.groups["sex"], None)}},
    }
    other = table_of(multi, **values.get(what, {}))
    if what == "order":
        other = table.take(np.arange(ROWS)[::-1])
    first = written(tmp_path / "a", table)
    second = written(tmp_path / "b", other, classes=("a", "b", "d") if what == "classes" else ("a", "b", "c"))
    assert content_of(first) != content_of(second)


def test_an_empty_text_is_none_that_is_missing_and_boundaries_count(tmp_path):
    digests = set()
    for number, values in enumerate([["ab", "c"], ["a", "bc"], ["abc", ""], ["abc", None], ["abc"]]):
        path = tmp_path / f"{number}.parquet"
        parquet.write_table(pa.table({"id": pa.array(values, pa.string())}), path)
        digests.add(content_of(path))
    assert len(digests) == 5


def test_of_other_files_the_bytes_count(tmp_path):
    (tmp_path / "start.safetensors").write_bytes(b"weights")
    assert content_of(tmp_path / "start.safetensors") == sha256(tmp_path / "start.safetensors")
