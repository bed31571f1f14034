"""Damaged weights and features that a user brings."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpstudy.core.files import read_tensor_metadata, read_tensors, write_tensors
from dpstudy.features.precomputed import read_rows
from dpstudy.features.weights import fitting

from .bad_input import damaged, examples, refusal

FILE = "weights.safetensors"
IDS = list("abcd")


@pytest.fixture(scope="module")
def network():
    """A network of one layer, whose weights are brought."""
    import torch

    return torch.nn.Linear(3, 2)


def load(network, path):
    network.load_state_dict(fitting(network, path), strict=False)


def read_in_every_way(path, network):
    """The file is read for its tensors, for its metadata, and as the network's weights."""
    for read in (read_tensors, read_tensor_metadata, lambda path: load(network, path)):
        refusal(lambda read=read: read(path), FILE)


def test_damaged_weights_are_read_or_refused(tmp_path, network):
    path = tmp_path / FILE
    write_tensors(path, {"weight": np.ones((2, 3), np.float32), "bias": np.ones(2, np.float32)}, {"made": "here"})

    @examples(150)
    @given(damaged(path.read_bytes()))
    def check(content):
        path.write_bytes(content)
        read_in_every_way(path, network)

    check()


TYPES = [
    "F32",
    "F16",
    "BF16",
    "F64",
    "I8",
    "U64",
    "BOOL",
    "C64",
    "F8_E4M3",
    "F8_E5M2",
    "F8_E8M0",
    "F4",
    "F6_E2M3",
    "X",
    3,
    None,
]
SIZES = [0, 1, 2, 3, -1, 1.5, "3", None, 2**31, 2**40, 2**62, 2**64]


@examples(150)
@given(
    kind=st.sampled_from(TYPES),
    shape=st.lists(st.sampled_from(SIZES), max_size=4),
    offsets=st.lists(st.sampled_from([0, 8, 24, 64, 2**40, 2**63, -8]), min_size=1, max_size=3),
    length=st.sampled_from([None, 0, 2**31, 2**40, 2**63]),
    nested=st.integers(0, 300),
)
def test_a_header_of_weights_promises_what_it_likes(tmp_path_factory, network, kind, shape, offsets, length, nested):
    path = tmp_path_factory.mktemp("weights") / FILE
    entry = {"dtype": kind, "shape": shape, "data_offsets": offsets}
    if nested > 200:
        entry = json.loads("[" * nested + "]" * nested)
    header = json.dumps({"weight": entry}).encode()
    length = len(header) if length is None else length
    path.write_bytes(length.to_bytes(8, "little") + header + bytes(64))
    read_in_every_way(path, network)


@pytest.mark.parametrize("kind", ["F32", "BF16", "F8_E4M3", "F4"])
def test_types_that_numpy_lacks_are_refused(tmp_path, network, kind):
    size = {"F32": 4, "BF16": 2, "F8_E4M3": 1, "F4": 0.5}[kind]
    header = json.dumps({"weight": {"dtype": kind, "shape": [2, 4], "data_offsets": [0, int(8 * size)]}}).encode()
    (tmp_path / FILE).write_bytes(len(header).to_bytes(8, "little") + header + bytes(int(8 * size)))
    said = refusal(lambda: read_tensors(tmp_path / FILE), FILE)
    assert said is None if kind == "F32" else "damaged safetensors file" in said
    assert "1 of another shape" in refusal(lambda: load(network, tmp_path / FILE), FILE)


def write_features(folder, suffix):
    """Features of four records, as an array or a table."""
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    if suffix == "npy":
        np.save(folder / "train.npy", values)
    else:
        parquet.write_table(pa.table({"id": IDS, "features": list(values)}), folder / "train.parquet")
    return folder / f"train.{suffix}"


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_damaged_features_are_read_or_refused(tmp_path, suffix):
    path = write_features(tmp_path, suffix)
    assert refusal(lambda: read_rows(tmp_path, "train", IDS, 0, 4)) is None

    @examples(120)
    @given(damaged(path.read_bytes()))
    def check(content):
        path.write_bytes(content)
        refusal(lambda: read_rows(tmp_path, "train", IDS, 0, 4), path.name)

    check()


NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 4, [None, pa.py_buffer(np.arange(5, dtype=np.int32)), pa.py_buffer(b"\xff\xfe\xfd\xfc")]
)
COLUMNS = [
    pa.array(IDS), NOT_UTF8, pa.array([1, 2, 3, 4]), pa.array([1.5, None, 2.5, float("nan")]), pa.array([[1.0]] * 4),
    pa.array([[1.0], [1.0, 2.0], [], None]), pa.array([[]] * 4, pa.list_(pa.float32())), pa.array([["x"]] * 4),
    pa.array([[[1.0]]] * 4), pa.array([{"a": 1}] * 4), pa.array([None] * 4, pa.null()), pa.array([b"\xff"] * 4),
    pa.array([2**62] * 4, pa.timestamp("us")), pa.array([1] * 4, pa.timestamp("us", tz="Nowhere/At all")),
    pa.array([10**9] * 4, pa.date32()), pa.array([2**62] * 4, pa.duration("s")), pa.array([True] * 4),
    pa.array([2**64 - 1] * 4, pa.uint64()), pa.array([[("a", 1.0)]] * 4, pa.map_(pa.string(), pa.float32())),
    pa.array(IDS).dictionary_encode(), pa.array([[1]] * 4, pa.list_(pa.float16())),
]  # fmt: skip
NAMES = ["id", "features", "label", "labels", "subject", "group_sex", "extra"]


@examples(250)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(COLUMNS)), min_size=1, max_size=4))
def test_tables_of_odd_columns_are_read_or_refused(tmp_path_factory, columns):
    from .sources import read_all

    root = tmp_path_factory.mktemp("tables")
    table = pa.Table.from_arrays([column for _, column in columns], names=[name for name, _ in columns])
    for name in ("train.parquet", "all.parquet"):
        parquet.write_table(table, root / name)
    refusal(lambda: read_rows(root, "train", IDS, 0, 4), "train.parquet")
    refusal(lambda: read_all({"reader": "labels", "location": ".", "classes": 3}, root), "all.parquet")
    options = {"reader": "image_table", "location": ".", "table": "all.parquet", "path_column": "id", "classes": 3}
    refusal(lambda: read_all(options | {"label_column": "label"}, root), "all.parquet")
    refusal(lambda: read_all(options | {"label_columns": ["extra", "features"]}, root), "all.parquet", "classes")
