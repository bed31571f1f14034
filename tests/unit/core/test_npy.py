"""Arrays in .npy and .npz files: read as numpy wrote them, and refused in one sentence where they are not."""

import zipfile

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.npy import map_npy, read_npy, read_npz

ARRAY = np.arange(12, dtype=np.int16).reshape(3, 4)


def test_arrays_are_read_as_they_were_written(tmp_path):
    np.save(tmp_path / "a.npy", ARRAY)
    np.savez_compressed(tmp_path / "a.npz", images=ARRAY, labels=ARRAY[0])
    assert isinstance(map_npy(tmp_path / "a.npy"), np.memmap)
    for found in (map_npy(tmp_path / "a.npy"), read_npy(tmp_path / "a.npy"), read_npz(tmp_path / "a.npz", "images")):
        np.testing.assert_array_equal(found, ARRAY)
        assert found.dtype == ARRAY.dtype


def test_objects_are_not_unpickled(tmp_path):
    class Planted:
        def __reduce__(self):
            return (tmp_path.joinpath("planted").touch, ())

    objects = np.array([Planted()], dtype=object)
    np.save(tmp_path / "a.npy", objects)
    np.savez(tmp_path / "a.npz", images=objects)
    for read in (lambda: read_npy(tmp_path / "a.npy"), lambda: read_npz(tmp_path / "a.npz", "images")):
        with pytest.raises(StudyError, match="damaged or truncated"):
            read()
    assert not (tmp_path / "planted").exists()


def test_what_is_missing_or_damaged_is_named(tmp_path):
    np.save(tmp_path / "a.npy", ARRAY)
    np.savez(tmp_path / "a.npz", images=ARRAY)
    with pytest.raises(StudyError, match=r"b\.npy: no such file; save images and labels with numpy\.save"):
        read_npy(tmp_path / "b.npy")
    with pytest.raises(StudyError, match=r"b\.npz: no such file"):
        read_npz(tmp_path / "b.npz", "images")
    with pytest.raises(StudyError, match=r"a\.npz: it holds no array 'image'"):
        read_npz(tmp_path / "a.npz", "image")
    for name in ("a.npy", "a.npz"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) - 9])
    with pytest.raises(StudyError, match=r"a\.npy: damaged or truncated"):
        read_npy(tmp_path / "a.npy")
    with pytest.raises(StudyError, match=r"a\.npz: damaged or truncated .* fetch it again"):
        read_npz(tmp_path / "a.npz", "images")


def test_a_header_that_promises_more_than_the_file_holds_takes_no_memory(tmp_path):
    np.save(tmp_path / "a.npy", ARRAY)
    header = (tmp_path / "a.npy").read_bytes().replace(b"(3, 4), }", b"(9999999999, 4), }")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("images.npy", header)
    with pytest.raises(StudyError, match="its header says .* more than the file can hold"):
        read_npz(tmp_path / "a.npz", "images")
