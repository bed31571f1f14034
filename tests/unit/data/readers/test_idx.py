import gzip
import hashlib

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data import download
from dpstudy.data.readers import open_reader

FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
OPTIONS = {"reader": "idx", "location": "idx"}


@pytest.fixture
def source(tmp_path, idx_bytes):
    """A folder with the four files, and the arrays in them."""
    random, arrays = np.random.default_rng(0), {}
    (tmp_path / "idx").mkdir()
    for pool, count in (("train", 30), ("test", 12)):
        arrays[pool] = random.integers(0, 256, (count, 6, 5)), random.integers(0, 10, count)
        for name, array in zip(FILES[pool], arrays[pool], strict=True):
            (tmp_path / "idx" / name).write_bytes(idx_bytes(array))
    return tmp_path, arrays


def compress(folder):
    for file in list(folder.iterdir()):
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()


@pytest.mark.parametrize("compressed", [False, True])
def test_reads_any_rows_in_order(source, compressed):
    root, arrays = source
    if compressed:
        compress(root / "idx")
    reader = open_reader("idx", OPTIONS, root)
    assert reader.pools == ("train", "test") and reader.classes == list("0123456789")
    for pool, (images, labels) in arrays.items():
        assert len(reader.rows(pool)) == len(labels)
        chosen = np.array([7, 0, 11])
        records = reader.read(pool, chosen)
        np.testing.assert_array_equal(records.images[..., 0], images[chosen])
        np.testing.assert_array_equal(records.labels, labels[chosen])
        assert list(records.ids) == [f"{pool}-00007", f"{pool}-00000", f"{pool}-00011"]


def test_test_star_names_and_label_offset(source, idx_bytes):
    root, arrays = source
    for name in FILES["test"]:
        (root / "idx" / name).rename(root / "idx" / name.replace("t10k", "test"))
    options = {**OPTIONS, "label_offset": 1, "classes": list("abcdefghij")}
    for pool, label_name in (("train", "train-labels-idx1-ubyte"), ("test", "test-labels-idx1-ubyte")):
        (root / "idx" / label_name).write_bytes(idx_bytes(arrays[pool][1] + 1))
    records = open_reader("idx", options, root).read("test", np.arange(12))
    np.testing.assert_array_equal(records.labels, arrays["test"][1])


@pytest.mark.parametrize(
    "name", ["{dotted}", "{dotted}.gz", "{name}/{name}", "{dotted}/{dotted}", "{name}.gz/{name}.gz"]
)
def test_names_as_archives_and_mirrors_have_them(source, name):
    root, arrays = source
    for file in list((root / "idx").iterdir()):
        content = file.read_bytes()
        file.unlink()
        path = root / "idx" / name.format(name=file.name, dotted=file.name.replace("-idx", ".idx"))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    for pool, (images, _) in arrays.items():
        found = open_reader("idx", OPTIONS, root).read(pool, np.arange(len(images)))
        np.testing.assert_array_equal(found.images[..., 0], images)


def test_a_file_that_is_not_there_is_asked_for_by_a_name_like_it(source, refused):
    root, _ = source
    for file in list((root / "idx").iterdir()):
        file.rename(root / "idx" / f"emnist-letters-{file.name}")
    near = "(did you mean 'emnist-letters-train-images-idx3-ubyte'?); rename it"
    refused(OPTIONS, root, f"train-images-idx3-ubyte: no such file, neither plain nor with .gz {near}")
    (root / "idx").rename(root / "raw")
    for file in list((root / "raw").iterdir()):
        file.rename(root / "raw" / file.name.removeprefix("emnist-letters-"))
    (root / "idx/MNIST").mkdir(parents=True)
    (root / "raw").rename(root / "idx/MNIST/raw")
    refused(OPTIONS, root, "neither plain nor with .gz; let `location` end in MNIST/raw")


def test_wrong_headers_lengths_and_labels_are_refused(source, refused, idx_bytes):
    root, arrays = source
    images, labels = root / "idx" / "train-images-idx3-ubyte", root / "idx" / "train-labels-idx1-ubyte"
    whole, whole_labels = images.read_bytes(), labels.read_bytes()
    images.write_bytes(whole[:-31])
    refused(OPTIONS, root, images.name, "truncated in row 28")
    images.write_bytes(whole + b"xy")
    refused(OPTIONS, root, images.name, "2 trailing bytes")
    images.write_bytes(whole[:10])
    refused(OPTIONS, root, images.name, "truncated: 10 bytes")
    images.write_bytes(b"")
    refused(OPTIONS, root, images.name, "truncated: 0 bytes")
    images.write_bytes(bytes([0, 0, 9, 3]) + whole[4:])
    refused(OPTIONS, root, images.name, "00 00 09 03", "00 00 08 03")
    images.write_bytes(whole_labels)
    refused(OPTIONS, root, images.name, "00 00 08 01")
    images.write_bytes(whole[:4] + b"\xff" * 4 + whole[8:])
    refused(OPTIONS, root, labels.name, "30 labels for the 4294967295 images")
    images.write_bytes(idx_bytes(np.zeros((30, 0, 5))))
    refused(OPTIONS, root, images.name, "no rows or no pixels")
    images.write_bytes(whole)
    wrong = arrays["train"][1].copy()
    wrong[17] = 10
    labels.write_bytes(idx_bytes(wrong))
    refused(OPTIONS, root, labels.name, "row 17 has label 10")
    labels.write_bytes(whole_labels)
    refused({**OPTIONS, "label_offset": 1}, root, labels.name, "has label -1")
    labels.unlink()
    refused(OPTIONS, root, labels.name, "no such file")
    refused({"reader": "idx", "location": "nowhere"}, root, "nowhere: no such folder")
    refused({"reader": "idx"}, root, "the key `location`")
    refused({**OPTIONS, "classes": list("aacdefghij")}, root, "'a' stands twice")


def test_damaged_gzip_is_refused(source, refused):
    root, _ = source
    compress(root / "idx")
    file = root / "idx" / "train-images-idx3-ubyte.gz"
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    refused(OPTIONS, root, file.name, "damaged or truncated gzip")
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 255
    file.write_bytes(flipped)
    refused(OPTIONS, root, file.name, "damaged or truncated gzip")


def test_missing_files_are_downloaded_and_checked(source, tmp_path):
    root, arrays = source
    compress(root / "idx")
    downloads = {
        file.name: {"url": file.as_uri(), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for file in (root / "idx").iterdir()
    }
    options = {"reader": "idx", "location": "fetched", "download": downloads}
    records = open_reader("idx", options, root).read("train", np.arange(30))
    np.testing.assert_array_equal(records.labels, arrays["train"][1])
    for file in (root / "idx").iterdir():
        file.unlink()
    open_reader("idx", options, root)  # what is there is not fetched again


def test_a_wrong_download_is_not_kept(tmp_path):
    remote, folder = tmp_path / "remote", tmp_path / "local"
    remote.write_bytes(b"not what was promised")
    with pytest.raises(StudyError, match="has SHA-256 .* it was not kept"):
        download.fetch(folder, {"data.gz": {"url": remote.as_uri(), "sha256": "0" * 64}})
    with pytest.raises(StudyError, match="cannot be fetched from"):
        download.fetch(folder, {"data.gz": {"url": (tmp_path / "absent").as_uri(), "sha256": "0" * 64}})
    with pytest.raises(StudyError, match="plain file name"):
        download.fetch(folder, {"../data.gz": {"url": remote.as_uri(), "sha256": "0" * 64}})
    with pytest.raises(StudyError, match="needs the keys"):
        download.fetch(folder, {"data.gz": {"url": remote.as_uri()}})
    assert [file.name for file in folder.iterdir()] == [".download.lock"]
