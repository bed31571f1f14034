"""Files that are whole or absent, and say when they are damaged."""

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_tensor_metadata, read_tensors, write_tensors

TENSORS = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.zeros((0, 3), np.float32), "c": np.ones(())}


def test_tensors_come_back_as_they_were(tmp_path):
    write_tensors(tmp_path / "x.safetensors", TENSORS, {"kind": "test"})
    found = read_tensors(tmp_path / "x.safetensors")
    assert found.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert found[name].dtype == tensor.dtype
        np.testing.assert_array_equal(found[name], tensor)
    assert read_tensor_metadata(tmp_path / "x.safetensors")["kind"] == "test"


def test_a_flipped_byte_is_seen(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensors(path, TENSORS)
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(content)
    with pytest.raises(StudyError, match="x.safetensors: its values have changed"):
        read_tensors(path)


def test_no_nan_reaches_a_file(tmp_path):
    with pytest.raises(ValueError, match="'a' holds a NaN"):
        write_tensors(tmp_path / "x.safetensors", {"a": np.array([1.0, np.nan])})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, '{"n": ' + "9" * 10_000 + "}", "{"])
def test_json_that_python_cannot_hold_is_a_sentence(text, tmp_path):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(StudyError, match="a.json: not valid JSON"):
        read_json(tmp_path / "a.json")
