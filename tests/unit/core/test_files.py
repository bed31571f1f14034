"""Files that are whole or absent, and say when they are damaged."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

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
