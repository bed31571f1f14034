"""A table of image paths, labels, subjects and groups; the images may also be a mosaic's tiles or in the table itself.

Rows keep the table's order and are counted from 0. An image's id is its path; paths are relative to the location.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.subjects import plain
from dpstudy.core.suggest import suggestion
from dpstudy.core.text import composed, heading
from dpstudy.data import dicom
from dpstudy.data.bands import UNKNOWN
from dpstudy.data.embedded import ARCHIVE, InArchives, InParquet
from dpstudy.data.findings import classes_of, labels_of
from dpstudy.data.group_columns import groups_of
from dpstudy.data.held import Source
from dpstudy.data.image_files import is_image_file
from dpstudy.data.images import Mosaic, decode_all, image_options, pair
from dpstudy.data.reader import IMAGE_FILES, Declared, Reader, Rows
from dpstudy.data.records import Records
from dpstudy.data.source import check_names, class_names, files_of, inside, is_leftover, location, on_disk
from dpstudy.data.table import TextTable, further, read_text_table

READER = Declared(
    keys=("location", "classes", *IMAGE_FILES, "table", "path_column", "image_column", "tags", "label_column",
          "separator", "no_label", "label_columns", "subject_column", "group_columns", "mosaic", "tile"),
    own=True,
    numbered=True,
)  # fmt: skip

_TRUTH = {"0": 0, "1": 1, "false": 0, "true": 1}  # as pandas writes booleans, and spreadsheets in capitals


def open(options: dict, data_root: Path) -> Reader:
    """The data set that the table `table` in `location` lists.

    The table is CSV, parquet or lines of JSON; or it is tar files of WebDataset, or parquet files with images in
    `image_column`, of which a pattern may name several.

    Options: `path_column` (needed where images have files of their own); `label_column` of class names, with `classes`,
    or, with a `separator`, of several findings a row (`no_label`: words that are none of them), or `label_columns`, one
    0/1 column a finding (one finding alone makes two classes); `subject_column`; `group_columns`; `size` and `channels`
    (to resize and convert); `resize`; `frame`; `max_pixels`; `window`; `tags`: columns that are read off the DICOM
    files; `mosaic` and `tile`: row i is tile i of that image.

    Raises:
        StudyError: a column is missing or has a missing value, a class is unknown, a path stands twice, leaves the
            location, or has no file (unless `unreadable` tolerates that, and no `tags` are asked of it).
    """
    folder = location(options, data_root)
    pattern = options.get("table")
    if not pattern:
        raise StudyError("reader 'image_table': the key `table` (a CSV or parquet file in `location`) is missing")
    embedded = _held(folder, str(pattern), options)
    table = embedded.table if embedded else read_text_table(_file(folder, str(pattern), "table"))
    return _Table(folder, table, options, embedded)


def files(options: dict, data_root: Path) -> list[Path]:
    """The image files that the table names, by `path_column` alone; none where images lie in a mosaic or the table.

    Labels, persons and groups may be read off the files themselves (`tags`), and data/state.py opens none.

    Raises:
        StudyError: as `open`, of the table and its paths.
    """
    if options.get("path_column") is None or options.get("mosaic"):
        return []
    folder = location(options, data_root)
    table = read_text_table(_file(folder, str(options.get("table")), "table"))
    return [on_disk(folder, path) for path in _paths(folder, table, options["path_column"], None)]


def unlisted(options: dict, data_root: Path) -> list[str]:
    """The image files in `location` that no row of the table names, sorted; none where rows have no files of their own.

    Raises:
        StudyError: as of `open`.
    """
    if options.get("path_column") is None:
        return []
    folder, listed, found = location(options, data_root), set(files(options, data_root)), []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_leftover(name)]
        there = (Path(place, name) for name in names if not is_leftover(name))
        found += [path.relative_to(folder).as_posix() for path in there if path not in listed and is_image_file(path)]
    return sorted(found)


def _held(folder: Path, pattern: str, options: dict) -> InParquet | InArchives | None:
    """The images that the table's files hold; None where images have files of their own, or are tiles."""
    column, archives = options.get("image_column"), pattern.lower().endswith(ARCHIVE)
    if column is None and not archives:
        return None
    if any(options.get(key) is not None for key in ("path_column", "mosaic", "tags")) or (column and archives):
        raise StudyError(
            "reader 'image_table': images that lie in the table's own files (`image_column` of parquet, or tar files) "
            "go with neither path_column nor mosaic nor tags"
        )
    inside(folder, pattern, "table")
    files = files_of(folder, pattern)
    if not files:
        raise StudyError(f"{folder / pattern}: no such file; mend `table`")
    return InArchives(files, folder) if archives else InParquet(files, str(column))


class _Table:
    pools = ("all",)

    def __init__(self, folder: Path, table: TextTable, options: dict, held: InParquet | InArchives | None = None):
        if options.get("tags"):
            table = _with_tags(folder, table, options)
        _check_columns(table, options)
        self._folder, self._table = folder, table
        self._decoding = image_options(options)
        findings = options.get("label_columns")
        if (findings is not None) == (options.get("label_column") is not None):
            raise StudyError("reader 'image_table': give either `label_column` or `label_columns`")
        for key in ("separator", "no_label"):
            if key in options and ("separator" not in options or findings is not None):
                raise StudyError(f"reader 'image_table': `{key}` goes with `label_column` and `separator`")
        if findings is not None:
            self.classes, self._labels = _findings(table, options)
        else:
            # not taken from the rows: which classes there are would then depend on private records
            self.classes, column = class_names(options), options["label_column"]
            if "separator" in options:
                found = table.findings(column, self.classes, options["separator"], options.get("no_label", ()))
                self.classes, self._labels = classes_of(self.classes), labels_of(found)
            else:
                self._labels = table.class_indices(column, self.classes)
        self.multi_label = self._labels.ndim == 2
        subject = options.get("subject_column")
        self._subjects = None if subject is None else table.subjects(subject)
        self._groups = groups_of(table, options.get("group_columns") or [])
        self._held = held
        paths = held.names if held else None
        if held is None and options.get("path_column") is not None:
            paths = _paths(folder, table, options["path_column"], self._subjects)
        elif held is None and not options.get("mosaic"):
            raise StudyError("reader 'image_table': the key `path_column` is missing")
        self._rows = Rows.numbered("row", table.rows, self._subjects) if paths is None else Rows(paths, self._subjects)
        self._mosaic = None
        if options.get("mosaic"):
            tile = _tile(options)
            self._mosaic = Mosaic([_file(folder, str(options["mosaic"]), "mosaic")], tile, options.get("max_pixels"))
            self._mosaic.check_rows(table.rows, str(table.path))
        elif held is None:
            files = [on_disk(folder, path) for path in self._rows.ids]  # without a mosaic there are paths
            if not options.get("unreadable"):
                _check_there(files, table, options["path_column"])
            self._rows = replace(self._rows, files=files)

    def rows(self, pool: str) -> Rows:
        return self._rows

    def read(self, pool: str, indices: np.ndarray) -> Records:
        return replace(self.known(pool).take(indices), images=self._images(indices))

    def known(self, pool: str) -> Records:
        """What the table says of each row."""
        return Records(self._rows.ids, None, self._labels, self._subjects, self._groups)

    def _images(self, indices: np.ndarray) -> np.ndarray:
        if self._mosaic is not None:
            return self._mosaic.read(indices)
        paths: Sequence[Source]
        if self._held is None:
            paths = [on_disk(self._folder, self._rows.ids[index]) for index in indices]
        else:
            paths = self._held.read(np.asarray(indices))
        return decode_all(paths, [self._table.where(index) for index in indices], **self._decoding)


def _file(folder: Path, relative: str, where: str) -> Path:
    """A file that the config names; a message of its absence names one like it.

    Raises:
        StudyError: it leaves the folder, or is not there.
    """
    path = on_disk(folder, inside(folder, relative, where).relative_to(folder).as_posix())
    if not path.exists():
        raise StudyError(f"{path}: no such file{_like(path)}; mend `{where}`")
    return path


def _like(path: Path) -> str:
    """The name of a file beside one that is not there, as a question."""
    return suggestion(path.name, (file.name for file in path.parent.iterdir())) if path.parent.is_dir() else ""


def _tile(options: dict) -> tuple[int, int]:
    tile = pair(options, "tile")
    if tile is None or any(options.get(key) is not None for key in ("size", "channels", "frame")):
        raise StudyError(
            "reader 'image_table': `mosaic` needs `tile` ([height, width]), and neither size nor channels nor frame"
        )
    return tile


def _check_columns(table: TextTable, options: dict) -> None:
    """Refuse a column that is not there, by the key that names it."""
    for key in ("path_column", "label_column", "label_columns", "subject_column", "group_columns"):
        asked = options.get(key) or []
        for name in [asked] if isinstance(asked, str) else asked:
            table.column(name if isinstance(name, str) else name["column"], empty=True, key=key)


def _with_tags(folder: Path, table: TextTable, options: dict) -> TextTable:
    """The table with a column for each of `tags`: what this tag of the row's DICOM file says.

    Where a file says nothing, its words are "unknown", and its numbers, as of an age, empty.

    Raises:
        StudyError: there is such a column, or no such tag, or a file is missing or no DICOM file, or does not say whose
            it is, or which class it is of.
    """
    tags = {heading(name): keyword for name, keyword in options["tags"].items()}
    if standing := [name for name in tags if name in table.columns]:
        raise StudyError(f"{table.path}: tags: the table has a column {standing[0]!r} already; give this tag another")
    if options.get("mosaic") or not options.get("path_column"):
        raise StudyError("reader 'image_table': `tags` need `path_column`, and files of their own, no `mosaic`")
    numbers = dicom.check_keywords(list(tags.values()))
    files = [on_disk(folder, path) for path in _paths(folder, table, options["path_column"], None)]
    try:
        _check_there(files, table, options["path_column"])
        rows = [dicom.tags(file, list(tags.values()), table.where(row)) for row, file in enumerate(files)]
    except StudyError as error:
        if options.get("unreadable"):
            raise StudyError(f"{error}; `unreadable` leaves out images alone, whose tags can be read") from None
        raise
    columns, needed = dict(table.columns), _needed(options)
    for place, ((name, keyword), number) in enumerate(zip(tags.items(), numbers, strict=True)):
        values = [row[place] for row in rows]
        faulty = [row for row, value in enumerate(values) if not value or "\ufffd" in value] if name in needed else []
        if faulty:
            what = "characters that its SpecificCharacterSet lacks" if values[faulty[0]] else "no value"
            raise StudyError(
                f"{table.where(faulty[0])}: the tag {keyword} of {files[faulty[0]]} has {what}{further(len(faulty))}, "
                f"and {needed[name]} is {name!r}; fill it in, or leave the row out"
            )
        columns[name] = np.array([value or ("" if number else UNKNOWN) for value in values], dtype=object)
    return replace(table, columns=columns)


def _needed(options: dict) -> dict[str, str]:
    """The columns that must have a value in each row -> the key that names them."""
    needed = {options["subject_column"]: "`subject_column`"} if options.get("subject_column") else {}
    classes = options.get("classes")
    if UNKNOWN not in (*(classes if isinstance(classes, list) else ()), *options.get("no_label", ())):
        labels = [options.get("label_column"), *(options.get("label_columns") or [])]
        needed |= {label: "`label_column`" for label in labels if label}
    return {heading(name): key for name, key in needed.items()}


def _paths(folder: Path, table: TextTable, column: str, subjects: np.ndarray | None) -> np.ndarray:
    first: dict[str, int] = {}
    paths = []
    for row, text in enumerate(table.column(column)):
        path = inside(folder, text, table.where(row)).relative_to(folder).as_posix()
        other = first.setdefault(composed(path), row)
        if other != row and subjects is not None and subjects[other] != subjects[row]:
            raise StudyError(
                f"{table.where(row)}: the path {path!r} of the subject {subjects[row]!r} stands in {table.row(other)} "
                f"too, as one of the subject {subjects[other]!r}; an image belongs to one subject: leave "
                "one of the two rows out"
            )
        if other != row:
            raise StudyError(f"{table.where(row)}: the path {path!r} stands in {table.row(other)} too; leave one out")
        paths.append(path)
    return np.array(paths, dtype=object)


def _check_there(files: list[Path], table: TextTable, column: str) -> None:
    """Refuse rows without an image file, before the first image is decoded."""
    missing = [row for row, file in enumerate(files) if not file.is_file()]
    if missing:
        if files[missing[0]].is_dir():
            raise StudyError(
                f"{table.where(missing[0])}: {files[missing[0]]} is a folder, as a series of DICOM files lies in one; "
                f"the column {column!r} names an image file in each row"
            )
        more = f", nor those of {len(missing) - 1} further rows" if len(missing) > 1 else ""
        raise StudyError(
            f"{table.where(missing[0])}: no such file{more}: {files[missing[0]]}{_like(files[missing[0]])}; mend the "
            f"column {column!r} (paths are relative to `location`), or leave the row out"
        )


def _findings(table: TextTable, options: dict) -> tuple[list[str], np.ndarray]:
    columns = [str(name) for name in options["label_columns"]]
    check_names(columns, "label_columns")
    classes = class_names(options, columns)
    if len(classes) != len(columns):
        raise StudyError(f"classes: {len(classes)} names for {len(columns)} label_columns")
    labels = np.empty((table.rows, len(columns)), np.int8)
    for place, name in enumerate(columns):
        texts = table.column(name)
        meaning = {text: _TRUTH.get(plain(text).casefold()) for text in set(texts)}
        odd = [row for row, text in enumerate(texts) if meaning[text] is None]
        if odd:
            raise StudyError(
                f"{table.where(odd[0])}: {texts[odd[0]]!r} in the column {name!r}; it must be 0 or 1{further(len(odd))}"
            )
        labels[:, place] = [meaning[text] == 1 for text in texts]
    return classes_of(classes), labels_of(labels)
