"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009), 32x32 RGB: python batches or the binary format, as published, or mosaics.

Binary: records of one label byte (CIFAR-100: a coarse, then a fine one) and 3,072 bytes of R, G and B planes. Python:
pickled dictionaries with `data` (n, 3072) uint8 and `labels` or `fine_labels`. CIFAR-100 uses the fine labels. Mosaics:
see the reader of that name. Rows, their order and their ids are the same in all three.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.pickles import read_batch
from dpstudy.data.reader import Declared, Reader, Rows
from dpstudy.data.readers import mosaics
from dpstudy.data.records import Records
from dpstudy.data.source import check_names, class_names, location, read_bytes, read_text, single_labels

READER = Declared(keys=("location", "classes", "variant", "format"), shape=(32, 32, 3), numbered=True)

_CIFAR10_CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
_PIXELS = 3 * 32 * 32
_FORMATS = {"python": "{}", "binary": "{}.bin", "mosaics": "test_labels.npy"}  # known by this; {}: the test batch


@dataclass(frozen=True)
class _Variant:
    label_bytes: int  # in a binary record; the last of them is the label
    label_key: str  # in a python batch
    batches: dict[str, list[str]]  # of each pool


_VARIANTS = {
    "cifar10": _Variant(1, "labels", {"train": [f"data_batch_{part}" for part in range(1, 6)], "test": ["test_batch"]}),
    "cifar100": _Variant(2, "fine_labels", {"train": ["train"], "test": ["test"]}),
}


def open(options: dict, data_root: Path) -> Reader:
    """Open what lies in `location`.

    Options: `variant` (cifar10 or cifar100), `format` (python, binary or mosaics; default: the one that is there),
    `classes` (default: CIFAR-10's ten names; for CIFAR-100 those of the file `meta` or `fine_label_names.txt`, of
    mosaics those of `classes.txt`).

    Raises:
        StudyError: a file is missing or damaged, or the batches of the train pool differ in size.
    """
    variant = options.get("variant", "cifar10")
    if variant not in _VARIANTS:
        raise StudyError(f"reader 'cifar': variant {variant!r} does not exist; it is cifar10 or cifar100")
    folder = location(options, data_root)
    format_name = options.get("format") or _format(folder, _VARIANTS[variant].batches["test"][0])
    if format_name not in _FORMATS:
        raise StudyError(f"reader 'cifar': format {format_name!r} does not exist; it is python, binary or mosaics")
    if format_name == "mosaics":
        names = {"classes": _CIFAR10_CLASSES} if variant == "cifar10" else {}
        return mosaics.open(
            names | {key: options[key] for key in ("location", "classes", "reader") if key in options}, data_root
        )
    return _Cifar(folder, _VARIANTS[variant], format_name == "binary", _classes(options, folder, variant))


def _format(folder: Path, test: str) -> str:
    """The format of what lies in `folder`, told by its test records; `test` names their batch."""
    files = {name: file.format(test) for name, file in _FORMATS.items()}
    formats = [name for name, file in files.items() if (folder / file).is_file()]
    if len(formats) > 1:
        raise StudyError(f"{folder}: holds CIFAR in the formats {' and '.join(formats)}; say which by the key `format`")
    if not formats:
        raise StudyError(
            f"{folder}: neither {files['python']} (python batches) nor {files['binary']} (binary) nor"
            f" {files['mosaics']} (mosaics) is there; put all files of one of these formats there"
        )
    return formats[0]


def _classes(options: dict, folder: Path, variant: str) -> list[str]:
    if options.get("classes") is not None or variant == "cifar10":
        return class_names(options, _CIFAR10_CLASSES)
    names, meta = folder / "fine_label_names.txt", folder / "meta"
    if names.is_file():
        fine_labels = [line for line in read_text(names).splitlines() if line]
    elif meta.is_file():
        raw = read_batch(meta).get("fine_label_names")
        if not isinstance(raw, list) or not all(isinstance(name, bytes | str) for name in raw):
            raise StudyError(f"{meta}: its key `fine_label_names` is not a list of names")
        fine_labels = [name.decode("latin1") if isinstance(name, bytes) else name for name in raw]
    else:
        return class_names(options)
    check_names(fine_labels, str(folder))
    return fine_labels


class _Cifar:
    pools = ("train", "test")
    multi_label = False

    def __init__(self, folder: Path, variant: _Variant, binary: bool, classes: list[str]):
        self.classes = classes
        self._variant, self._binary = variant, binary
        suffix = ".bin" if binary else ""
        self._files = {pool: [folder / f"{name}{suffix}" for name in names] for pool, names in variant.batches.items()}
        self._counts = {pool: [self._count(path) for path in files] for pool, files in self._files.items()}
        # published batches are of one size, so a batch cut short at the end of a record shows here
        for path, count in zip(self._files["train"], self._counts["train"], strict=True):
            if count != self._counts["train"][0]:
                raise StudyError(
                    f"{path}: {count} rows, but {self._files['train'][0].name} has {self._counts['train'][0]}:"
                    " one of them is truncated"
                )

    def rows(self, pool: str) -> Rows:
        return Rows.numbered(pool, sum(self._counts[pool]))

    def read(self, pool: str, indices: np.ndarray) -> Records:
        indices = np.asarray(indices, np.int64)
        images = np.empty((len(indices), 32, 32, 3), np.uint8)
        labels = np.empty(len(indices), np.int32)
        start = 0
        for path, count in zip(self._files[pool], self._counts[pool], strict=True):
            here = np.flatnonzero((indices >= start) & (indices < start + count))
            if len(here):
                pixels, batch_labels = self._batch(path)
                planes = pixels[indices[here] - start].reshape(-1, 3, 32, 32)
                images[here] = planes.transpose(0, 2, 3, 1)
                labels[here] = batch_labels[indices[here] - start]
            start += count
        return Records(self.rows(pool).ids[indices], images, labels)

    def _count(self, path: Path) -> int:
        if not self._binary:
            return len(self._batch(path)[0])
        if not path.is_file():
            raise StudyError(f"{path}: no such file")
        record = self._variant.label_bytes + _PIXELS
        count, rest = divmod(path.stat().st_size, record)
        if rest or not count:
            raise StudyError(
                f"{path}: truncated in row {count}: its size is not a multiple of the {record} of a record"
            )
        return count

    def _batch(self, path: Path) -> tuple[np.ndarray, np.ndarray]:
        if self._binary:
            self._count(path)
            table = np.frombuffer(read_bytes(path), np.uint8).reshape(-1, self._variant.label_bytes + _PIXELS)
            pixels, labels = table[:, self._variant.label_bytes :], table[:, self._variant.label_bytes - 1]
        else:
            content = read_batch(path)
            data, listed = content.get("data"), content.get(self._variant.label_key)
            if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (_PIXELS,):
                raise StudyError(f"{path}: its key `data` is not a uint8 array of shape (rows, {_PIXELS})")
            if not isinstance(listed, list) or any(type(label) is not int for label in listed):
                raise StudyError(f"{path}: its key `{self._variant.label_key}` is not a list of integers")
            if len(listed) != len(data) or not listed:
                raise StudyError(f"{path}: {len(listed)} labels for {len(data)} images")
            pixels, labels = data, np.array(listed)
        return pixels, single_labels(labels, self.classes, str(path))
