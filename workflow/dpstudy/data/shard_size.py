"""Estimates of a shard's size for its job's memory, from counted lines or files and a single header.

No data set is opened for it, since whoever plans a study asks for every one. What cannot be told so is None.
"""

import functools
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dpstudy.core.errors import StudyError
from dpstudy.data.image_files import GREY_MODES, is_image_file, opened
from dpstudy.data.names import split_fractions, splits_of
from dpstudy.data.source import is_leftover, on_disk
from dpstudy.data.windows import window_of
from dpstudy.schema.reading import schema

_LISTS = {"chexpert": "train.csv", "nih": "Data_Entry_2017*.csv", "places365": "places365_train_standard.txt"}
_FOLDERS = {"image_folder": "", "imagenet": "train"}
_BLOCK = 1 << 20
_BYTES_A_PIXEL = 16  # at most, while an image is decoded: measured on one of 96 million, with an alpha channel


Shape = tuple[int | None, int | None, int | None]  # (H, W, C); None: only the files know


class ShardSize(NamedTuple):
    """The number of records of a data set, and the bytes of memory that reading one shard takes.

    `image_bytes` are of the decoded images, `file_bytes` of the file, or the row group of one, that is read whole.
    """

    records: int
    image_bytes: int
    file_bytes: int = 0


def shard_size(options: dict, data_root: str | os.PathLike, split: str) -> ShardSize | None:
    """The approximate size of a split's shards; None where it cannot be estimated.

    Args:
        options: the data set's entry in the config.
    """
    reader, folder = options["reader"], on_disk(Path(data_root), str(options.get("location", "")))
    try:
        if reader == "arrays":
            stored = sum(path.stat().st_size for path in folder.glob("*_images.npy"))
            return ShardSize(0, math.ceil(stored * _share(options, split) / options.get("shards", 1)))
        if reader == "idx":
            return _idx_size(options, folder, split)
        if reader in _FOLDERS:
            records = _files_below(str(folder / _FOLDERS[reader]))
            lists = []
        else:
            lists = list(folder.glob(str(options.get("table") or _LISTS[reader])))
            records = sum(_rows_of(str(path)) for path in lists) if lists else _rows_of("")
        most = (options.get("splits") or {}).get("records", math.inf)
        chosen = min(records * _share(options, split), most)
        records_held = chosen / options.get("shards", 1) + (records if "mosaic" in options else 0)
        decoding = _BYTES_A_PIXEL * options.get("max_pixels", 0)  # of the largest image, beside what is kept
        packed = [path for path in lists if path.suffix == ".parquet"] if "image_column" in options else []
        group = max(map(unpacked_bytes, packed), default=0)
        return ShardSize(records, math.ceil(records_held * _image_bytes(options, folder)) + decoding, group)
    except (OSError, StudyError, LookupError, ValueError, TypeError):  # the job itself reports the error
        return None


def unpacked_bytes(path: str | os.PathLike) -> int:
    """The uncompressed bytes of a parquet file's largest row group, by its footer; 0 where it has none.

    Raises:
        FileNotFoundError: it is still to be made.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    os.stat(path)  # whose error names the file, as Snakemake wants to know it; pyarrow's does not
    try:
        footer = pq.read_metadata(path)
    except pa.ArrowInvalid:  # a damaged file: the code that reads it reports that
        return 0
    return max((footer.row_group(group).total_byte_size for group in range(footer.num_row_groups)), default=0)


def _idx_size(options: dict, folder: Path, split: str) -> ShardSize:
    from dpstudy.data.readers.idx import image_shape

    from_test_file = split == "test" and not split_fractions(splits_of(options, True)).test  # the file of test images
    rows, *size = image_shape(folder, "test" if from_test_file else "train")
    most = (options.get("splits") or {}).get("records", math.inf)
    records = min(rows * (1.0 if from_test_file else _share(options, split)), most) / options.get("shards", 1)
    return ShardSize(rows, math.ceil(records * math.prod(size)), rows * math.prod(size))


def _share(options: dict, split: str) -> float:
    """The part of the records that a split has, at most."""
    parts = split_fractions(splits_of(options, True))
    test = parts.test or 0
    shares = {"train": 1 - test - parts.validation - parts.left_out, "validation": parts.validation, "test": test or 1}
    return shares[split]


def told_shape(options: dict) -> Shape:
    """The image shape that a data set's config entry or its reader's format states."""
    height, width, channels = schema("config")["$defs"]["source"]["x-shapes"].get(options["reader"], [None] * 3)
    height, width = options.get("size") or options.get("tile") or (height, width)
    return height, width, options.get("channels", channels)


def _image_bytes(options: dict, folder: Path) -> int:
    height, width, channels = told_shape(options)
    if height and width:
        return height * width * (channels or 3)
    first = next(_images_below(folder), None)
    if first is None:
        raise LookupError(f"{folder} has no image")
    with opened(first, str(folder), options.get("frame"), options.get("max_pixels"), window_of(options)) as image:
        return image.width * image.height * options.get("channels", 1 if image.mode in GREY_MODES else 3)


def _images_below(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        paths = (Path(place, name) for name in sorted(names) if not is_leftover(name))
        yield from filter(is_image_file, paths)


@functools.cache
def _files_below(folder: str) -> int:
    return sum(len(names) for _, _, names in os.walk(folder))


@functools.cache
def _rows_of(table: str) -> int:
    if table.endswith(".tar"):
        raise LookupError(f"{table}: only its members tell")
    if table.endswith(".parquet"):
        import pyarrow.parquet as parquet

        return parquet.ParquetFile(table).metadata.num_rows
    with open(table, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(_BLOCK), b""))
