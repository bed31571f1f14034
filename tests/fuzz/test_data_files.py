"""Damaged files of data sets, in every format that is read: the outcome is what was there, or one sentence."""

import gzip
import io
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpstudy.data.images import decode
from dpstudy.features.precomputed import read_rows

from . import sources
from .bad_input import damaged, examples, refusal

DAMAGED = [
    (sources.idx, "train-images-idx3-ubyte", 40),
    (sources.idx, "t10k-labels-idx1-ubyte", 40),
    (sources.idx_gz, "train-images-idx3-ubyte.gz", 60),
    (sources.cifar_python, "train", 60),
    (sources.cifar_python, "meta", 60),
    (sources.cifar_binary, "train.bin", 30),
    (sources.imagenet32, "train_data_batch_1.npz", 80),
    (sources.imagenet32, "val_data.npz", 80),
    (sources.arrays, "all_images.npy", 60),
    (sources.mosaics, "all_labels.npy", 40),
    (sources.mosaics, "all_00.png", 40),
    (sources.labels_npy, "all_labels.npy", 60),
    (sources.labels_parquet, "all.parquet", 60),
    (sources.table_csv, "table.csv", 60),
    (sources.table_parquet, "table.parquet", 60),
    (sources.nih, "Data_Entry_2017_v2020.csv", 40),
    (sources.nih, "train_val_list.txt", 30),
    (sources.chexpert, "train.csv", 40),
    (sources.places, "places365_train_standard.txt", 40),
    (sources.places, "categories_places365.txt", 40),
]


def named(value):
    """How a case is called: its source and its file."""
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(("write", "name", "count"), DAMAGED, ids=named)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(tmp_path, write, name, count):
    options = write(tmp_path)
    whole = (tmp_path / name).read_bytes()
    assert refusal(lambda: sources.read_all(options, tmp_path)) is None

    @examples(count)
    @given(damaged(whole))
    def check(content):
        (tmp_path / name).write_bytes(content)
        # another file may be the one that does not fit any more: an image that a table names, say
        refusal(lambda: sources.read_all(options, tmp_path), str(tmp_path))

    check()


FIELDS = ["", " ", "²", "1e999", "9" * 400, "-1", "nan", "None", "0.0", "\0", '"', '"a\nb"', "a,b", "../x", "/etc/x",
          "x" * 300, "é", "\ufeff", "x|y", "|", "1 2", "🙂", "=1+1", "\u2028"]  # fmt: skip


@pytest.mark.parametrize(
    ("write", "name", "columns"),
    [
        (sources.table_csv, "table.csv", sources.TABLE),
        (sources.nih, "Data_Entry_2017_v2020.csv", sources.NIH),
        (sources.chexpert, "train.csv", sources.CHEXPERT),
    ],
    ids=named,
)
def test_a_table_with_odd_fields_is_read_or_refused(tmp_path, write, name, columns):
    options = write(tmp_path)

    @examples(80)
    @given(st.sampled_from(sorted(columns)), st.integers(-1, sources.ROWS - 1), st.sampled_from(FIELDS), st.booleans())
    def check(column, row, field, quoted):
        changed = {key: list(values) for key, values in columns.items()}
        field = '"' + field.replace('"', '""') + '"' if quoted else field
        if row < 0:  # the header
            changed = {field if key == column else key: values for key, values in changed.items()}
        else:
            changed[column][row] = field
        (tmp_path / name).write_text(sources.csv_text(changed), encoding="utf-8")
        refusal(lambda: sources.read_all(options, tmp_path), str(tmp_path))

    check()


@pytest.mark.parametrize("rows", [2**27, 2**31, 2**32 - 1])
@pytest.mark.parametrize("write", [sources.idx, sources.idx_gz], ids=named)
def test_an_idx_header_of_many_rows_is_refused_before_they_are_counted_out(tmp_path, write, rows):
    options = write(tmp_path)
    for path in tmp_path.glob("train-*"):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        content = content[:4] + struct.pack(">I", rows) + content[8:]
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    assert "truncated in row 4" in refusal(lambda: sources.read_all(options, tmp_path), "train-labels-idx1-ubyte")


def test_a_compressed_file_that_unfolds_to_gigabytes_is_refused(tmp_path):
    options = sources.idx_gz(tmp_path)
    path = tmp_path / "train-labels-idx1-ubyte.gz"
    header = bytes([0, 0, 8, 1]) + struct.pack(">I", sources.ROWS)
    path.write_bytes(gzip.compress(header) + gzip.compress(bytes(1 << 25)) * 64)  # two gigabytes, in 64 pieces
    assert "1000 or more trailing bytes" in refusal(lambda: sources.read_all(options, tmp_path), path.name)


def npy(shape, kind="'|u1'", content=bytes(64)):
    """An array's file whose header says `shape`."""
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


SHAPES = ["(2,)", "(-1,)", "(2**40,)", f"({2**40},)", f"({2**40}, 3072)", f"({2**62}, {2**62})", f"({10**30},)", "(0,)",
          f"(0, {2**62})", "(True,)", "(1.5,)", "[4]", "4", "(" * 200, "(4,)" + ")" * 9, "'x'", "{[]: 1}"]  # fmt: skip
KINDS = ["'|u1'", "'<i8'", "'<f4'", "'|O'", "[('a', '|O')]", "'V0'", f"'S{2**31 - 1}'", "('<f4', (2,))", "'<M8[ns]'",
         "None", "3", "'<f2'", "'U9'"]  # fmt: skip


@examples(120)
@given(st.sampled_from(SHAPES), st.sampled_from(KINDS), st.integers(0, 3))
def test_a_header_of_an_array_promises_what_it_likes(tmp_path_factory, shape, kind, version):
    content = npy(shape, kind)
    content = content[:6] + bytes([version]) + content[7:]
    root = tmp_path_factory.mktemp("arrays")
    for write, name in ((sources.arrays, "all_images.npy"), (sources.labels_npy, "all_labels.npy")):
        options = write(root)
        (root / name).write_bytes(content)
        refusal(lambda options=options: sources.read_all(options, root), str(root))
    (root / "train.npy").write_bytes(content)
    refusal(lambda: read_rows(root, "train", list("ab"), 0, 2), "train.npy")
    options = sources.imagenet32(root)
    for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(root / "val_data.npz", "w", how) as archive:
            archive.writestr("data.npy", content)
            archive.writestr("labels.npy", content)
        refusal(lambda: sources.read_all(options, root), "val_data.npz")


@pytest.mark.parametrize("change", ["no member", "an array alone", "another archive", "members without a suffix"])
def test_what_is_no_archive_of_arrays_is_refused(tmp_path, change):
    options = sources.imagenet32(tmp_path)
    path = tmp_path / "val_data.npz"
    if change == "an array alone":
        np.save(path.with_suffix(".npy"), np.zeros(4))
        path.with_suffix(".npy").rename(path)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for name in {"no member": (), "another archive": ("../../x.npy",)}.get(change, ("data", "labels")):
                archive.writestr(name, npy("(4,)"))
    assert refusal(lambda: sources.read_all(options, tmp_path), "val_data.npz")
    assert not (tmp_path.parent.parent / "x.npy").exists()


@pytest.mark.parametrize(
    ("field", "value"), [("flags", 1), ("flags", 32), ("flags", 64), ("version", 99), ("method", 99)]
)
def test_an_archive_that_claims_what_numpy_never_writes_is_refused(tmp_path, field, value):
    options = sources.imagenet32(tmp_path)
    path = tmp_path / "val_data.npz"
    content = bytearray(path.read_bytes())
    for mark, first in ((b"PK\x03\x04", 4), (b"PK\x01\x02", 6)):  # of each member, and of its line in the directory
        start = content.find(mark)
        while start >= 0:
            content[start + first + {"version": 0, "flags": 2, "method": 4}[field]] = value
            start = content.find(mark, start + 4)
    path.write_bytes(content)
    assert "damaged or truncated .npz" in refusal(lambda: sources.read_all(options, tmp_path), path.name)


def picture(kind):
    """A small picture as the bytes of a file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(sources.noise(9, 11, 3)).save(file, kind)
    return file.getvalue()


@pytest.mark.filterwarnings("ignore")  # Pillow's, of odd metadata
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "PPM", "TIFF"])
def test_a_damaged_image_is_decoded_or_refused(tmp_path, kind):
    path = tmp_path / "scan.png"

    @examples(60)
    @given(damaged(picture(kind)))
    def check(content):
        path.write_bytes(content)
        # Python asks for what a chunk of a PNG says that it holds, and gives it back untouched
        refusal(lambda: decode(path, "row 1", (4, 4), 3), "scan.png", memory=None)

    check()


@pytest.mark.parametrize("name", ["train", "table.csv", "all_labels.npy", "val_data.npz", "all.parquet", "train.bin"])
def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path, name):
    write = {file: write for write, file, _ in DAMAGED}[name]
    options = write(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    assert refusal(lambda: sources.read_all(options, tmp_path), name)
