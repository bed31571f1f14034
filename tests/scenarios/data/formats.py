"""The same records in every format that is read: functions that write rows into a folder, and give a config entry."""

import pickle
import struct
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from PIL import Image

FINDINGS = ("Edema", "Cardiomegaly", "Atelectasis")
CLASSES = ("a", "b")
SPLITS = {"validation": 0.3}
ANEW = SPLITS | {"test": 0.3}
PERSONS = {"unit": "subject", "per_subject": 2, "splits": ANEW}
PRIVATE = {"location": ".", "test_split": "private", "classes": list(CLASSES)}
OWN = {"location": ".", "classes": list(CLASSES), "splits": ANEW}


@dataclass(frozen=True)
class Row:
    """One record; `seed` says what its image shows."""

    name: str
    seed: int
    label: int
    findings: tuple[int, ...]
    subject: str
    pool: str

    @property
    def image(self):
        return np.random.default_rng(self.seed).integers(0, 256, (32, 32, 3)).astype(np.uint8)


def made_up(count=60):
    """Rows of persons with three or four each; of the rows 5, 11 and 17 all but the name is the same."""
    random = np.random.default_rng(0)
    rows = [
        Row(
            f"r{random.integers(10**9)}",
            place,
            int(random.integers(2)),
            tuple(map(int, random.integers(0, 2, 3))),
            f"patient{random.integers(18):05d}",
            "test" if place % 3 == 0 else "train",
        )
        for place in range(count)
    ]
    for place in (11, 17):
        rows[place] = replace(rows[5], name=rows[place].name)
    return rows


def stacked(rows):
    return np.stack([row.image for row in rows])


def labels(rows):
    return np.array([row.label for row in rows])


def pools(rows):
    return {pool: [row for row in rows if row.pool == pool] for pool in ("train", "test")}


def save_images(root, paths):
    for path, row in paths.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(row.image).save(root / path)


def save_mosaic(path, rows):
    tiles = np.zeros((-(-len(rows) // 10) * 10, 32, 32, 3), np.uint8)
    tiles[: len(rows)] = stacked(rows)
    grid = tiles.reshape(-1, 10, 32, 32, 3).transpose(0, 2, 1, 3, 4)
    Image.fromarray(grid.reshape(-1, 320, 3)).save(path)


def save_csv(path, columns, rows):
    """`columns`: name -> what it says of a row."""
    lines = [list(columns), *([str(tell(row)) for tell in columns.values()] for row in rows)]
    path.write_text("\n".join(map(",".join, lines)) + "\n")


def arrays(root, rows, patch):
    np.save(root / "all_images.npy", stacked(rows))
    np.save(root / "all_labels.npy", labels(rows))
    return OWN


def arrays_of_two_pools(root, rows, patch):
    for pool, some in pools(rows).items():
        np.save(root / f"{pool}_images.npy", stacked(some))
        np.save(root / f"{pool}_labels.npy", labels(some))
    return OWN | {"splits": SPLITS}


def idx(root, rows, patch):
    for name, some in zip(("train", "t10k"), pools(rows).values(), strict=True):
        for kind, array in (("images-idx3", stacked(some)[..., 0]), ("labels-idx1", labels(some).astype(np.uint8))):
            header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            (root / f"{name}-{kind}-ubyte").write_bytes(header + array.tobytes())
    return PRIVATE | {"splits": SPLITS}


def cifar_python(root, rows, patch):
    for pool, some in pools(rows).items():
        pixels = stacked(some).transpose(0, 3, 1, 2).reshape(len(some), -1)
        batch = {b"data": pixels, b"fine_labels": labels(some).tolist()}
        (root / pool).write_bytes(pickle.dumps(batch, protocol=2))
    return PRIVATE | {"splits": SPLITS, "variant": "cifar100"}


def cifar_binary(root, rows, patch):
    for pool, some in pools(rows).items():
        pixels = stacked(some).transpose(0, 3, 1, 2).reshape(len(some), -1)
        both = np.repeat(labels(some)[:, None], 2, 1).astype(np.uint8)
        (root / f"{pool}.bin").write_bytes(np.hstack([both, pixels]).tobytes())
    return PRIVATE | {"splits": SPLITS, "variant": "cifar100"}


def mosaics(root, rows, patch):
    for pool, some in pools(rows).items():
        save_mosaic(root / f"{pool}_00.png", some)
        np.save(root / f"{pool}_labels.npy", labels(some))
    return PRIVATE | {"splits": SPLITS}


def imagenet32(root, rows, patch):
    for name, some in zip(("train_data_batch_1", "val_data"), pools(rows).values(), strict=True):
        pixels = stacked(some).transpose(0, 3, 1, 2).reshape(len(some), -1)
        np.savez(root / f"{name}.npz", data=pixels, labels=labels(some) + 1)
    return PRIVATE | {"splits": SPLITS}


def digits(root, rows, patch):
    table = np.column_stack([stacked(rows)[:, :8, :8, 0].reshape(len(rows), 64) % 17, labels(rows)])
    patch.setattr("dpstudy.data.readers.digits._table", lambda: table)
    return {"splits": ANEW, "test_split": "private", "classes": list(CLASSES)}


def image_folder(root, rows, patch):
    save_images(root, {f"{CLASSES[row.label]}/{row.name}.png": row for row in rows})
    return OWN


def table_of_paths(root, rows, patch):
    save_images(root, {f"{row.name}.png": row for row in rows})
    findings = {name: lambda row, place=place: row.findings[place] for place, name in enumerate(FINDINGS)}
    columns = {"path": lambda row: f"{row.name}.png", "who": lambda row: row.subject, **findings}
    save_csv(root / "table.csv", columns, rows)
    told = {"table": "table.csv", "path_column": "path", "subject_column": "who", "label_columns": list(FINDINGS)}
    return told | PERSONS | {"location": ".", "beyond": "truncate", "positives": 1}


def table_of_tiles(root, rows, patch):
    options = table_of_paths(root, rows, patch) | {"mosaic": "tiles.png", "tile": [32, 32]}
    save_mosaic(root / "tiles.png", rows)
    del options["path_column"]
    return options


def table_of_tiles_without_persons(root, rows, patch):
    options = table_of_tiles(root, rows, patch) | {"unit": "record"}
    del options["subject_column"], options["per_subject"]
    return options


def labels_with_ids(root, rows, patch):
    columns = {"id": [row.name for row in rows], "labels": [list(row.findings) for row in rows]}
    parquet.write_table(pa.table(columns | {"subject": [row.subject for row in rows]}), root / "all.parquet")
    return PERSONS | {"location": ".", "classes": 3, "beyond": "truncate", "positives": 1}


def imagenet(root, rows, patch):
    for pool, name in (("train", "train"), ("test", "val")):
        for label in CLASSES:
            (root / name / label).mkdir(parents=True)
        save_images(root, {f"{name}/{CLASSES[row.label]}/{row.name}.png": row for row in pools(rows)[pool]})
    return PRIVATE | {"splits": SPLITS, "size": [32, 32]}


def places365(root, rows, patch):
    (root / "categories_places365.txt").write_text("/a 0\n/b 1\n")
    for pool, (table, folder) in {"train": ("train_standard", "data_256"), "test": ("val", "val_256")}.items():
        some = pools(rows)[pool]
        save_images(root, {f"{folder}/{row.name}.png": row for row in some})
        (root / f"places365_{table}.txt").write_text("".join(f"{row.name}.png {row.label}\n" for row in some))
    return PRIVATE | {"splits": SPLITS, "size": [32, 32]}


def chexpert(root, rows, patch):
    findings = {name: lambda row, place=place: row.findings[place] for place, name in enumerate(FINDINGS)}
    constant = {"Sex": lambda row: "Male", "Age": lambda row: 57, "Frontal/Lateral": lambda row: "Frontal"}
    for pool, table in (("train", "train"), ("test", "valid")):
        paths = {f"{pool}/{row.subject}/study1/{row.name}.png": row for row in pools(rows)[pool]}
        save_images(root, paths)
        path = {"Path": lambda row, pool=pool: f"CheXpert-v1.0/{pool}/{row.subject}/study1/{row.name}.png"}
        save_csv(root / f"{table}.csv", path | constant | findings, pools(rows)[pool])
    told = {"location": ".", "test_split": "private", "size": [32, 32], "findings": list(FINDINGS)}
    return told | PERSONS | {"beyond": "truncate", "positives": 1}


def nih(root, rows, patch):
    names = ("Mass", "Nodule", "Hernia")
    save_images(root, {f"images_001/{row.name}.png": row for row in rows})
    columns = {
        "Image Index": lambda row: f"{row.name}.png",
        "Finding Labels": lambda row: (
            "|".join(name for name, there in zip(names, row.findings, strict=True) if there) or "No Finding"
        ),
        "Patient ID": lambda row: int(row.subject[-5:]),
        "Patient Age": lambda row: 57,
        "Patient Sex": lambda row: "M",
        "View Position": lambda row: "PA",
    }
    save_csv(root / "Data_Entry_2017_v2020.csv", columns, rows)
    told = {"location": ".", "test_split": "private", "size": [32, 32], "findings": list(names)}
    return told | PERSONS | {"beyond": "truncate", "positives": 1}
