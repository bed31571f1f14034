"""Files that are whole or absent, and say when they are damaged."""

import json
import os
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic, read_json, read_tensor_metadata, read_tensors, write_json, write_tensors

TENSORS = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.zeros((0, 3), np.float32), "c": np.ones(())}


def test_tensors_come_back_as_they_were(tmp_path):
    write_tensors(tmp_path / "x.safetensors", TENSORS, {"kind": "test"})
    found = read_tensors(tmp_path / "x.safetensors")
    assert found.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert found[name].dtype == tensor.dtype
        np.testing.assert_array_equal(found[name], tensor)
    assert read_tensor_metadata(tmp_path / "x.safetensors")["kind"] == "test"


def _parts(content):
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"].pop("crc32", None)
    return header, content[end:]


def test_files_are_those_of_the_library(tmp_path):
    types = ("u8", "i8", "f8", "f4", "u4", "i4", "f2", "u2", "i2", "i1", "u1", "?")
    tensors = {f"t{(7 * i) % 12:02}": np.arange(5).astype(kind) for i, kind in enumerate(types)}
    tensors |= {"é": np.ones((2, 3), np.float32), "empty": np.zeros((0, 3)), "a": np.ones((3, 2), np.float32).T}
    write_tensors(tmp_path / "x.safetensors", tensors | {"swapped": np.arange(3, dtype=">i4")}, {"why": 'é"'})
    plain = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    library = save(plain | {"swapped": np.arange(3, dtype="<i4")}, {"why": 'é"'})
    assert _parts((tmp_path / "x.safetensors").read_bytes()) == _parts(library)


def test_no_copy_of_a_large_tensor_is_written(tmp_path):
    """Three were held: 34 GB for the class Grams of 1,000 classes and 1,024 features."""
    tensor = np.ones((64, 1 << 15), np.float32)
    tracemalloc.start()
    write_tensors(tmp_path / "x.safetensors", {"a": tensor})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * tensor.nbytes  # a byte a number says which are finite


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


def test_what_the_dead_began_is_removed_and_what_the_living_write_is_not(tmp_path):
    with subprocess.Popen(["true"]) as ended:
        pass
    with atomic(tmp_path / "x.json") as temporary:  # as a process names it
        mine = temporary.name
        temporary.touch()
    dead, living, far, old = (
        tmp_path / mine.replace(str(os.getpid()), str(pid)).replace(*machine)
        for pid, machine in (
            (ended.pid, ("", "")),
            (os.getppid(), ("", "")),
            (7, (mine.split(".")[-3], "00000000")),
            (8, (mine.split(".")[-3], "00000000")),
        )
    )
    for path in (dead, living, far, old):
        path.touch()
    os.utime(old, (time.time() - 2 * 24 * 3600,) * 2)
    write_json(tmp_path / "x.json", {})
    assert {path.name for path in tmp_path.iterdir()} == {living.name, far.name, "x.json"}


WRITER = """
import sys
from dpstudy.core.files import write_json
for number in range(300):
    write_json(sys.argv[1], {"number": number})
"""


def test_two_processes_may_write_the_same_file_at_once(tmp_path):
    """As two seeds of a cell note what their records are."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "x.json")]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [writer.communicate()[1] for writer in writers] == ["", ""]
    assert read_json(tmp_path / "x.json") == {"number": 299} and len(list(tmp_path.iterdir())) == 1
