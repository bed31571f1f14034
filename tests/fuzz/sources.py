"""Small data sets, valid and in every format that is read, for tests to damage."""

import gzip
import pickle
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from PIL import Image

from dpstudy.data.readers import open_reader
from dpstudy.data.shared_records import check_files

ROWS = 4
_random = np.random.default_rng(7)


def read_all(options, root):
    """Open a data set and read every row of it, as preparing its shards does; {pool: records}."""
    reader = open_reader(options["reader"], options, root)
    found = {}
    for pool in reader.pools:
        rows = reader.rows(pool)
        check_files(rows)
        found[pool] = reader.read(pool, np.arange(len(rows)))
    return found


def noise(*shape):
    """Random bytes of a shape."""
    return _random.integers(0, 256, shape).astype(np.uint8)


def idx(root, suffix=""):
    """Handwriting in the IDX format, plain or compressed."""
    for pool in ("train", "t10k"):
        for kind, array in (("images-idx3", noise(ROWS, 6, 5)), ("labels-idx1", np.arange(ROWS, dtype=np.uint8))):
            content = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
            content = gzip.compress(content, mtime=0) if suffix else content
            (root / f"{pool}-{kind}-ubyte{suffix}").write_bytes(content)
    return {"reader": "idx", "location": "."}


def idx_gz(root):
    """The same, compressed."""
    return idx(root, ".gz")


def cifar_python(root):
    """CIFAR-100's python batches, with the names of its classes."""
    for name in ("train", "test"):
        batch = {b"data": noise(ROWS, 3072), b"fine_labels": list(range(ROWS)), b"filenames": [b"a.png"] * ROWS}
        (root / name).write_bytes(pickle.dumps(batch, protocol=2))
    names = [f"class {label}".encode() for label in range(ROWS)]
    (root / "meta").write_bytes(pickle.dumps({b"fine_label_names": names}, protocol=2))
    return {"reader": "cifar", "location": ".", "variant": "cifar100"}


def cifar_binary(root):
    """CIFAR-100's binary format."""
    for name in ("train", "test"):
        labels = np.arange(ROWS, dtype=np.uint8)[:, None]
        (root / f"{name}.bin").write_bytes(np.hstack([labels, labels, noise(ROWS, 3072)]).tobytes())
    return {"reader": "cifar", "location": ".", "variant": "cifar100", "format": "binary", "classes": ROWS}


def imagenet32(root):
    """Downsampled ImageNet, one file compressed and one plain."""
    for name, save in (("train_data_batch_1", np.savez_compressed), ("val_data", np.savez)):
        save(root / f"{name}.npz", data=noise(ROWS, 48), labels=np.arange(1, ROWS + 1))
    return {"reader": "imagenet32", "location": ".", "classes": ROWS}


def arrays(root):
    """Images and labels as .npy files."""
    np.save(root / "all_images.npy", noise(ROWS, 5, 6, 3))
    np.save(root / "all_labels.npy", np.arange(ROWS))
    return {"reader": "arrays", "location": ".", "classes": ROWS}


def mosaics(root):
    """One mosaic of 10 tiles, and their labels."""
    Image.fromarray(noise(4, 40, 3)).save(root / "all_00.png")
    np.save(root / "all_labels.npy", np.arange(10) % ROWS)
    return {"reader": "mosaics", "location": ".", "tile": [4, 4], "classes": ROWS}


def labels_npy(root):
    """Labels alone, as arrays."""
    np.save(root / "all_labels.npy", np.eye(ROWS, dtype=np.int8))
    return {"reader": "labels", "location": ".", "classes": ROWS}


def labels_parquet(root):
    """Labels alone, in a table."""
    columns = {
        "id": ["a", "b", "c", "d"],
        "label": list(range(ROWS)),
        "subject": list("xxyy"),
        "group_sex": list("fmfm"),
    }
    parquet.write_table(pa.table(columns), root / "all.parquet")
    return {"reader": "labels", "location": ".", "classes": ROWS}


def _pictures(root, names, size=(5, 6)):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noise(*size)).save(root / name)


TABLE = {
    "path": [f"images/{row}.png" for row in range(ROWS)],
    "label": ["healthy", "ill", "ill", "healthy"],
    "patient": ["p1", "p2", "p2", "p3"],
    "years": ["57", "", "061Y", "3.5"],
}
_TABLE_OPTIONS = {
    "reader": "image_table",
    "location": ".",
    "path_column": "path",
    "label_column": "label",
    "classes": ["healthy", "ill"],
    "subject_column": "patient",
    "group_columns": [{"column": "years", "bands": [40, 60]}],
}


def table_csv(root):
    """A table of image files."""
    _pictures(root, TABLE["path"])
    (root / "table.csv").write_text(csv_text(TABLE))
    return _TABLE_OPTIONS | {"table": "table.csv"}


def table_parquet(root):
    """The same as parquet."""
    _pictures(root, TABLE["path"])
    parquet.write_table(pa.table(TABLE), root / "table.parquet")
    return _TABLE_OPTIONS | {"table": "table.parquet"}


NIH = {
    "Image Index": [f"{row}.png" for row in range(ROWS)],
    "Finding Labels": ["No Finding", "Mass|Nodule", "Hernia", "Mass"],
    "Patient ID": ["1", "2", "2", "3"],
    "Patient Age": ["57", "061Y", "3", "80"],
    "Patient Sex": ["M", "F", "F", "M"],
    "View Position": ["PA", "AP", "PA", "PA"],
}


def nih(root):
    """Chest X-rays as the NIH lists them, with the lists of its split."""
    _pictures(root, [f"images_001/images/{name}" for name in NIH["Image Index"]])
    (root / "Data_Entry_2017_v2020.csv").write_text(csv_text(NIH))
    (root / "train_val_list.txt").write_text("0.png\n1.png\n2.png\n")
    (root / "test_list.txt").write_text("3.png\n")
    return {"reader": "nih", "location": ".", "size": [4, 4]}


CHEXPERT = {
    "Path": [f"CheXpert-v1.0/train/patient0000{row}/study1/view1_frontal.png" for row in range(ROWS)],
    "Sex": ["Male", "Female", "Female", "Male"],
    "Age": ["57", "61", "3", "80"],
    "Frontal/Lateral": ["Frontal"] * ROWS,
    "Edema": ["1.0", "", "0.0", "-1.0"],
    "Cardiomegaly": ["0", "1", "", "-1"],
}


def chexpert(root):
    """Chest X-rays as CheXpert lists them."""
    _pictures(root, [path.split("/", 1)[1] for path in CHEXPERT["Path"]])
    for name in ("train.csv", "valid.csv"):
        (root / name).write_text(csv_text(CHEXPERT))
    return {"reader": "chexpert", "location": ".", "size": [4, 4], "findings": ["Edema", "Cardiomegaly"]}


def places(root):
    """Places-365 by its lists."""
    _pictures(root, ["data_256/a/abbey/1.png", "data_256/b/bar/2.png", "val_256/3.png"])
    (root / "categories_places365.txt").write_text("/a/abbey 0\n/b/bar 1\n")
    (root / "places365_train_standard.txt").write_text("/a/abbey/1.png 0\n/b/bar/2.png 1\n")
    (root / "places365_val.txt").write_text("3.png 1\n")
    return {"reader": "places365", "location": ".", "size": [4, 4]}


def csv_text(columns):
    """Columns as CSV."""
    rows = zip(*columns.values(), strict=True)
    return "".join(",".join(row) + "\n" for row in [tuple(columns), *rows])
