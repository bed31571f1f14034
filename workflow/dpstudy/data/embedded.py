"""Images stored inside parquet files (as on the Hugging Face Hub) or tar archives (WebDataset), with their columns.

Nothing is unpacked: of a parquet file the row groups that hold what is asked for are read, of a tar file its headers
once and then the images asked for.
"""

import contextlib
import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from dpstudy.core.errors import StudyError
from dpstudy.core.text import heading
from dpstudy.data.held import Held
from dpstudy.data.image_files import SUFFIXES
from dpstudy.data.table import TextTable, cell_text, read_text_table

ARCHIVE = ".tar"


class InParquet:
    """Images in one column of parquet files with the same schema: bytes, or {bytes, path}.

    Attributes:
        table: the other columns, the files one below the other.
        names: (n,) the images' own names, or None where no image has one.

    Raises:
        StudyError: a file is damaged or has other columns than the first, or no images in this column; some images have
            names and some have none, or two have the same. (Were all named otherwise for the sake of one, that one
            would decide on the splits of all.)
    """

    def __init__(self, paths: Sequence[Path], column: str):
        self._paths, self._column = paths, column
        schemas = [_schema(path) for path in paths]
        for path, schema in zip(paths, schemas, strict=True):
            if schema.names != schemas[0].names:
                raise StudyError(f"{path}: has other columns than {paths[0].name}; they must be the same")
        if column not in schemas[0].names:
            raise StudyError(f"{paths[0]}: no column {column!r}; there are {', '.join(schemas[0].names)}")
        others = [name for name in schemas[0].names if name != column]
        parts = [read_text_table(path, others) for path in paths]
        place = paths[0] if len(paths) == 1 else paths[0].parent
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
        exact: dict[str, int] = {}
        for name, most in (pair for part in parts for pair in part.exact.items()):
            exact[name] = min(most, exact.get(name, most))
        self.table = TextTable(place, columns, sum(part.rows for part in parts), exact=exact)
        self._groups, rows = [], [0]
        for path in paths:
            footer = parquet.read_metadata(path)
            self._groups += [(path, group) for group in range(footer.num_row_groups)]
            rows += [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        self._starts = np.cumsum(rows)
        self.names = self._names()

    def read(self, indices: np.ndarray) -> list[Held]:
        """The image files of these rows, in this order.

        Raises:
            StudyError: a row has none.
        """
        by_row: dict[int, Held] = {}
        inside = np.searchsorted(self._starts, indices, side="right") - 1
        for place in np.unique(inside):
            path, group = self._groups[place]
            with _readable(path):
                file = parquet.ParquetFile(path, page_checksum_verification=True)
                values = file.read_row_group(group, [self._column], use_threads=False).column(0)
            for row in indices[inside == place]:
                by_row[row] = self._held(values[int(row - self._starts[place])].as_py(), int(row))
        return [by_row[row] for row in indices]

    def _held(self, value: object, row: int) -> Held:
        content = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(content, bytes):
            raise StudyError(f"{self.table.where(row)}: no image in the column {self._column!r}; leave the row out")
        return Held(f"the image of row {row}", content)

    def _names(self) -> np.ndarray | None:
        kind = _schema(self._paths[0]).field(self._column).type
        if not pa.types.is_struct(kind) or kind.get_field_index("path") < 0:
            return None
        names: list[str] = []
        for path in self._paths:  # of the images the names alone are read
            with _readable(path):
                column = parquet.ParquetFile(path).read([f"{self._column}.path"], use_threads=False).column(0)
            values = [value["path"] if isinstance(value, dict) else value for value in column.to_pylist()]
            names += [name if isinstance(name, str) else "" for name in values]
        if not any(names):
            return None
        first: dict[str, int] = {}
        for row, name in enumerate(names):
            where, other = self.table.where(row), first.setdefault(name, row)
            if not name:
                raise StudyError(f"{where}: its image has no `path`, and others have; give all one, or none")
            if other != row:
                raise StudyError(
                    f"{where}: its image is called {name!r}, as that of row {other} is; give each a `path` of its own, "
                    "or none to any"
                )
        return np.array(names, dtype=object)


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raise a StudyError where a parquet file is damaged."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise StudyError(f"{path}: damaged parquet file ({str(error).splitlines()[0]}); write it anew") from None


def _schema(path: Path) -> pa.Schema:
    with _readable(path):
        return parquet.read_schema(path)


class InArchives:
    """Samples in WebDataset's tar files: members whose names differ only after their first dot.

    Of each sample one member is the image. The others are columns of the table: `cls` or `txt` as they stand there, and
    the fields of `json` that are words or numbers.

    Attributes:
        table: a row a sample.
        names: (n,) archive/sample, the archive as it lies below the folder.

    Raises:
        StudyError: an archive is damaged or compressed, or a sample has no image, or two.
    """

    def __init__(self, paths: Sequence[Path], folder: Path):
        self._images: list[tuple[Path, int, int]] = []
        names, rows = [], []
        for path in paths:
            for key, members in _samples(path).items():
                images = [member for end, member in members.items() if f".{end.rpartition('.')[2]}" in SUFFIXES]
                if len(images) != 1:
                    raise StudyError(f"{path}: the sample {key!r} has {len(images)} images; it must have one")
                self._images.append((path, images[0].offset_data, images[0].size))
                names.append(f"{path.relative_to(folder).with_suffix('').as_posix()}/{key}")
                rows.append(_fields(path, key, members))
        if not rows:
            raise StudyError(f"{paths[0]}: no sample with an image in it")
        place = paths[0] if len(paths) == 1 else paths[0].parent
        known = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: np.array([row.get(name, "") for row in rows], dtype=object) for name in known}
        self.table, self.names = TextTable(place, columns, len(rows)), np.array(names, dtype=object)

    def read(self, indices: np.ndarray) -> list[Held]:
        """The image files of these rows, in this order."""
        files = []
        for index in indices:
            path, start, size = self._images[index]
            with open(path, "rb") as file:
                file.seek(start)
                files.append(Held(self.names[index], file.read(size)))
        return files


def _samples(path: Path) -> dict[str, dict[str, tarfile.TarInfo]]:
    """sample -> what follows the first dot -> member, in the archive's order."""
    samples: dict[str, dict[str, tarfile.TarInfo]] = {}
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                folder, _, name = member.name.rpartition("/")
                stem, _, end = name.partition(".")
                if not member.isreg() or not stem or not end:
                    continue
                sample = samples.setdefault(f"{folder}/{stem}".lstrip("./"), {})
                if end.lower() in sample:
                    raise StudyError(f"{path}: two members have the name {member.name!r}; write the archive anew")
                sample[end.lower()] = member
    except (tarfile.TarError, OSError, UnicodeError) as error:
        packed = "; if it is compressed, unpack it" if isinstance(error, tarfile.ReadError) else ""
        raise StudyError(f"{path}: it is no tar file, or damaged ({str(error).splitlines()[0]}){packed}") from None
    return samples


def _fields(path: Path, key: str, members: dict[str, tarfile.TarInfo]) -> dict[str, str]:
    """The columns of one sample."""
    columns: dict[str, str] = {}
    with open(path, "rb") as file:
        for end, member in members.items():
            if end not in ("cls", "txt", "json"):
                continue
            file.seek(member.offset_data)
            try:
                text = file.read(member.size).decode("utf-8")
                fields = json.loads(text) if end == "json" else {end: text}
            except ValueError:
                raise StudyError(f"{path}: {member.name}: no text of UTF-8, or no JSON") from None
            if not isinstance(fields, dict):
                raise StudyError(f"{path}: {member.name}: its JSON is no object, with a name for each value")
            for name, value in fields.items():
                if isinstance(value, str | int | float) or value is None:
                    columns[heading(name)] = cell_text(value)
    return columns
