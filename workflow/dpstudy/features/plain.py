"""A parquet layout in which a column of fixed-size lists is stored contiguously, as in memory, for fast reading.

Decoding lists value by value takes several times as long as copying them. Written without dictionary, compression and
missing values, in row groups of one page each, a group's values are the last bytes of its column chunk: readers that
know where copy them, and to every other reader the file is ordinary parquet.
"""

import os
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

_GROUP_BYTES = 1 << 26
_GROUP_ROWS = 16_384  # arrow begins a new page after 20,000 rows
_PAGE_BYTES = 1 << 30

Runs = list[tuple[int, int]]


def layout(table: pa.Table, name: str) -> dict:
    """The options of `pyarrow.parquet.write_table` that store the column `name` contiguously."""
    names = {field.name: f"{field.name}.list.element" if _is_list(field) else field.name for field in table.schema}
    others = [path for column, path in names.items() if column != name]
    row_bytes = table.schema.field(name).type.list_size * table.schema.field(name).type.value_type.bit_width // 8
    return {
        "compression": {names[name]: "none"} | dict.fromkeys(others, "zstd"),
        "use_dictionary": others,
        "write_statistics": others,
        "data_page_size": _PAGE_BYTES,
        "row_group_size": max(1, min(_GROUP_ROWS, _GROUP_BYTES // max(1, row_bytes))),
    }


def locate(content: bytes, name: str, parts: Sequence[np.ndarray]) -> Runs | None:
    """The (offset, number of values) runs of the column's values in the file, in order; None if not contiguous.

    Args:
        content: the file's.
        parts: the column as parquet decodes it, flattened, in order, cut anywhere; what lies at the runs is compared
            with it bit by bit.
    """
    metadata, runs = parquet.ParquetFile(pa.BufferReader(content)).metadata, []
    size = parts[0].itemsize if parts else 1
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        chunks = map(group.column, range(group.num_columns))
        chunk = next(chunk for chunk in chunks if chunk.path_in_schema.split(".")[0] == name)
        end = chunk.data_page_offset + chunk.total_compressed_size
        runs.append((end - chunk.num_values * size, chunk.num_values))
    return runs if _lie_there(content, runs, parts) else None


def _lie_there(content: bytes, runs: Runs, parts: Sequence[np.ndarray]) -> bool:
    """Whether the runs hold the values, compared piece by piece: of all together a copy would be made."""
    coming = iter(parts)
    part = next(coming, np.empty(0, np.uint8))
    for offset, count in runs:
        while count:
            while not len(part):
                if (following := next(coming, None)) is None:
                    return False
                part = following
            taken = min(count, len(part))
            bits = part[:taken].view(f"u{part.itemsize}")
            if offset < 0 or not np.array_equal(np.frombuffer(content, bits.dtype, taken, offset), bits):
                return False
            part, count, offset = part[taken:], count - taken, offset + taken * bits.itemsize
    return not len(part) and not any(map(len, coming))


def read(path: str | os.PathLike, runs: Sequence[tuple[int, int]], dtype: str) -> np.ndarray:
    """The values (rows x d,) at the `runs` of a file, in order."""
    values = np.empty(sum(count for _, count in runs), dtype)
    view, place = values.view(np.uint8).data, 0
    with open(path, "rb", buffering=0) as file:
        for offset, count in runs:
            file.seek(offset)
            size = count * values.itemsize
            while size:
                got = file.readinto(view[place : place + size])
                if not got:
                    raise EOFError(f"{path}: {size} bytes are missing")
                place, size = place + got, size - got
    return values


def _is_list(field: pa.Field) -> bool:
    return pa.types.is_list(field.type) or pa.types.is_fixed_size_list(field.type)
