import os
import pickle
import struct

import numpy as np
import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.data.pickles import read_batch
from dpstudy.data.readers import open_reader

TRAIN = [f"data_batch_{part}" for part in range(1, 6)]
ROWS = 8


def planes(count, seed):
    """(count, 3072) bytes as the batches hold them: R, G and B planes."""
    return np.random.default_rng(seed).integers(0, 256, (count, 3072)).astype(np.uint8)


def pixel_by_pixel(raw):
    """The same images as (n, 32, 32, 3), put together one pixel at a time."""
    images = np.zeros((len(raw), 32, 32, 3), np.uint8)
    for channel in range(3):
        for y in range(32):
            for x in range(32):
                images[:, y, x, channel] = raw[:, channel * 1024 + y * 32 + x]
    return images


def write_python(folder, name, raw, labels, key=b"labels"):
    content = {b"data": raw, key: [int(label) for label in labels], b"batch_label": b"some batch"}
    (folder / name).write_bytes(pickle.dumps(content, protocol=2))


def labels_of(part, classes=10):
    return np.random.default_rng(100 + part).integers(0, classes, ROWS)


@pytest.fixture
def python_folder(tmp_path):
    for part, name in enumerate([*TRAIN, "test_batch"]):
        write_python(tmp_path, name, planes(ROWS, part), labels_of(part))
    return tmp_path


@pytest.fixture
def binary_folder(tmp_path):
    for part, name in enumerate([*TRAIN, "test_batch"]):
        record = np.concatenate([labels_of(part)[:, None].astype(np.uint8), planes(ROWS, part)], axis=1)
        (tmp_path / f"{name}.bin").write_bytes(record.tobytes())
    return tmp_path


@pytest.fixture
def mosaics_folder(tmp_path):
    for pool, parts in (("train", range(5)), ("test", [5])):
        tiles = np.concatenate(
            [pixel_by_pixel(planes(ROWS, part)) for part in parts] + [np.zeros((2, 32, 32, 3), np.uint8)]
        )
        tiles = tiles[: len(tiles) // 10 * 10]  # the last row of tiles is full
        image = tiles.reshape(-1, 10, 32, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 320, 3)
        Image.fromarray(image).save(tmp_path / f"{pool}_00.png")
        np.save(tmp_path / f"{pool}_labels.npy", np.concatenate([labels_of(part) for part in parts]))
    return tmp_path


def options(format_name, **more):
    return {"reader": "cifar", "location": ".", "format": format_name, **more}


@pytest.mark.parametrize("told", [True, False], ids=["told", "found"])
@pytest.mark.parametrize("format_name", ["python", "binary", "mosaics"])
def test_all_formats_hold_the_same_rows(format_name, told, request):
    folder = request.getfixturevalue(f"{format_name}_folder")
    reader = open_reader("cifar", options(format_name if told else None), folder)
    assert reader.classes[3] == "cat" and len(reader.rows("train")) == 5 * ROWS and len(reader.rows("test")) == ROWS
    images = np.concatenate([pixel_by_pixel(planes(ROWS, part)) for part in range(5)])
    labels = np.concatenate([labels_of(part) for part in range(5)])
    chosen = np.array([39, 0, 17, 8])  # over several batches, in no order
    records = reader.read("train", chosen)
    np.testing.assert_array_equal(records.images, images[chosen])
    np.testing.assert_array_equal(records.labels, labels[chosen])
    assert list(records.ids[:2]) == ["train-00039", "train-00000"]
    np.testing.assert_array_equal(reader.read("test", np.arange(ROWS)).images, pixel_by_pixel(planes(ROWS, 5)))


def test_cifar100_takes_the_fine_labels_in_both_formats(tmp_path):
    names = [f"class {label}" for label in range(100)]
    python, binary = tmp_path / "python", tmp_path / "binary"
    python.mkdir(), binary.mkdir()
    for part, pool in enumerate(("train", "test")):
        fine, coarse = labels_of(part, 100), labels_of(part + 10, 20)
        write_python(python, pool, planes(ROWS, part), fine, key=b"fine_labels")
        record = np.concatenate([coarse[:, None], fine[:, None], planes(ROWS, part)], axis=1).astype(np.uint8)
        (binary / f"{pool}.bin").write_bytes(record.tobytes())
    meta = {b"fine_label_names": [name.encode() for name in names]}
    (python / "meta").write_bytes(pickle.dumps(meta, protocol=2))
    (binary / "fine_label_names.txt").write_text("\n".join(names) + "\n")
    left = open_reader("cifar", {**options("python", variant="cifar100"), "location": "python"}, tmp_path)
    right = open_reader("cifar", {**options("binary", variant="cifar100"), "location": "binary"}, tmp_path)
    assert left.classes == right.classes == names
    for pool in ("train", "test"):
        one, other = left.read(pool, np.arange(ROWS)), right.read(pool, np.arange(ROWS))
        np.testing.assert_array_equal(one.images, other.images)
        np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(left.read("train", np.arange(ROWS)).labels, labels_of(0, 100))
    (python / "meta").unlink()
    with pytest.raises(StudyError, match="name the classes"):
        open_reader("cifar", {**options("python", variant="cifar100"), "location": "python"}, tmp_path)


class _RunsCode:
    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


@pytest.mark.parametrize("protocol", range(6))
def test_a_malicious_pickle_is_refused_and_nothing_ran(python_folder, refused, protocol):
    canary = python_folder / "canary"
    for function, named in ((os.mkdir, "posix.mkdir"), (eval, "eval")):
        argument = str(canary) if function is os.mkdir else f"__import__('os').mkdir({str(canary)!r})"
        evil = {b"x": _RunsCode(function, argument), b"data": planes(1, 0), b"labels": [1]}
        content = pickle.dumps(evil, protocol=protocol)
        (python_folder / "data_batch_2").write_bytes(content)
        refused(options("python"), python_folder, "data_batch_2", "refused", named)
        assert not canary.exists()
        pickle.loads(content)  # the same bytes do run where they are not refused
        assert canary.exists()
        canary.rmdir()


@pytest.mark.parametrize(
    "content",
    [
        b"cnumpy.testing._private.utils\nrunstring\n.",
        b"cnumpy\nload\n.",
        b"cbuiltins\ngetattr\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x11ndarray.__class__\x93.",
        b"c_codecs\ndecode\n.",
        b"c_codecs\nencode\n(Vabc\nVrot13\ntR.",
        b"cnumpy.core.multiarray\nfromfile\n.",
    ],
)
def test_only_array_constructors_are_admitted(tmp_path, content):
    (tmp_path / "batch").write_bytes(content)
    with pytest.raises(StudyError, match="refused"):
        read_batch(tmp_path / "batch")


def test_a_pickle_cannot_alter_what_is_admitted(tmp_path):
    # BUILD with a slot state sets attributes of the object on the stack
    for name in (b"c_codecs\nencode\n", b"cnumpy\nndarray\n", b"cnumpy.core.multiarray\n_reconstruct\n"):
        (tmp_path / "batch").write_bytes(name + b"(N(dVmarked\nI1\nstb.")
        with pytest.raises(StudyError, match="damaged"):
            read_batch(tmp_path / "batch")


def test_array_names_of_old_and_new_numpy_are_admitted(tmp_path):
    content = pickle.dumps({"data": planes(2, 0)}, protocol=2)
    assert b"numpy._core.multiarray" in content  # what this numpy writes; the published files say numpy.core
    (tmp_path / "new").write_bytes(content)
    (tmp_path / "old").write_bytes(content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    for name in ("new", "old"):
        np.testing.assert_array_equal(read_batch(tmp_path / name)["data"], planes(2, 0))


def test_damaged_python_batches_are_refused(python_folder, refused):
    file = python_folder / "data_batch_3"
    whole = file.read_bytes()
    for cut in (0, 1, 40, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:cut])
        refused(options("python"), python_folder, "data_batch_3", "damaged or truncated")
    file.write_bytes(pickle.dumps([1, 2], protocol=2))
    refused(options("python"), python_folder, "data_batch_3", "holds a list")
    write_python(python_folder, file.name, planes(ROWS, 0)[:, :3000], labels_of(0))
    refused(options("python"), python_folder, "data_batch_3", "`data`", "3072")
    write_python(python_folder, file.name, planes(ROWS, 0), labels_of(0)[:-1])
    refused(options("python"), python_folder, "data_batch_3", "7 labels for 8 images")
    write_python(python_folder, file.name, planes(ROWS, 0), [0, 1, 2, 10, 4, 5, 6, 7])
    refused(options("python"), python_folder, "data_batch_3", "row 3 has label 10")
    write_python(python_folder, file.name, planes(ROWS - 1, 0), labels_of(0)[:-1])
    refused(options("python"), python_folder, "data_batch_3", "7 rows")
    file.unlink()
    refused(options("python"), python_folder, "data_batch_3", "no such file")
    refused(options("hdf5"), python_folder, "'hdf5'")
    (python_folder / "test_labels.npy").touch()
    refused(options(None), python_folder, "python and mosaics", "`format`")
    for name in ("test_labels.npy", "test_batch"):
        (python_folder / name).unlink()
    refused(options(None), python_folder, "neither test_batch (python batches) nor test_batch.bin (binary)")
    refused(options("python", variant="cifar11"), python_folder, "'cifar11'")


def test_damaged_binary_batches_are_refused(binary_folder, refused):
    file = binary_folder / "data_batch_4.bin"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    refused(options("binary"), binary_folder, "data_batch_4.bin", "truncated in row 7")
    file.write_bytes(whole[:-3073])
    refused(options("binary"), binary_folder, "data_batch_4.bin", "7 rows", "truncated")
    file.write_bytes(b"")
    refused(options("binary"), binary_folder, "data_batch_4.bin", "truncated")
    wrong = bytearray(whole)
    wrong[5 * 3073] = 77
    file.write_bytes(wrong)
    # the mislabelled row lies in the last fifth of train
    refused(options("binary"), binary_folder, "data_batch_4.bin", "row 5 has label 77")
    file.unlink()
    refused(options("binary"), binary_folder, "data_batch_4.bin", "no such file")


def python2_batch(raw, labels):
    """The bytes that Python 2 and the numpy of 2009 wrote: protocol 2 with byte strings, as in the published files."""
    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNN" + 2 * b"J\xff\xff\xff\xff" + b"K\x00tb"
    shape = b"K" + bytes([len(raw)]) + b"M" + struct.pack("<H", 3072) + b"\x86"
    content = b"T" + struct.pack("<i", raw.size) + raw.tobytes()
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    array += b"(K\x01" + shape + dtype + b"\x89" + content + b"tb"
    label_list = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    name = b"U\x0bbatch_label" + b"U\x15training batch 1 of 5"
    return b"\x80\x02}(" + name + b"U\x06labels" + label_list + b"U\x04data" + array + b"u."


def test_batches_written_by_python_2(python_folder):
    (python_folder / "data_batch_1").write_bytes(python2_batch(planes(ROWS, 0), labels_of(0)))
    records = open_reader("cifar", options("python"), python_folder).read("train", np.arange(ROWS))
    np.testing.assert_array_equal(records.images, pixel_by_pixel(planes(ROWS, 0)))
    np.testing.assert_array_equal(records.labels, labels_of(0))
