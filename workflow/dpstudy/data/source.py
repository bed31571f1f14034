"""Helpers of readers: locating files, naming classes, and validating labels."""

import gzip
import unicodedata
import zlib
from pathlib import Path, PurePosixPath

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import present
from dpstudy.core.suggest import neighbour
from dpstudy.core.text import composed

_BLOCK = 1 << 24  # bytes that are read at once
_LONGEST_NAME, _LONGEST_PATH = 255, 3000  # bytes; a path has a folder in front
# what systems leave in folders and archives, besides names that begin with a dot
_LEFTOVERS = frozenset(
    "__macosx thumbs.db ehthumbs.db desktop.ini icon\r @eadir $recycle.bin lost+found".split(" ")
) | {"system volume information"}
_LOG = "dpstudy-spent.jsonl"  # privacy.data_book.NAME; no import, which would make data anew when that module changes


def location(options: dict, data_root: Path) -> Path:
    """The folder in the option `location`, relative to `data_root`.

    Raises:
        StudyError: there is no such option, or no such folder.
    """
    if not options.get("location"):
        raise StudyError(f"reader {options.get('reader')!r}: the key `location` (a folder below data_root) is missing")
    folder = on_disk(Path(data_root), str(options["location"]))
    if not folder.is_dir():
        raise StudyError(
            f"{folder}: no such folder{neighbour(folder)}; mend `location`, `data_root` or the variable DPSTUDY_DATA"
        )
    return folder


def inside(folder: Path, relative: str, where: str) -> Path:
    """The path `folder`/`relative`, which may not lie outside the folder.

    Raises:
        StudyError: `relative` is empty, absolute, climbs by "..", or is longer than file systems allow.
    """
    encoded = relative.encode(errors="replace")
    if len(encoded) > _LONGEST_PATH or max(map(len, encoded.split(b"/"))) > _LONGEST_NAME:
        raise StudyError(f"{where}: the path {relative[:60]!r}... is too long for the name of a file")
    path = PurePosixPath(relative.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in relative or path.parts[0].endswith(":"):
        raise StudyError(f"{where}: the path {relative!r} leaves {folder}; paths must be relative to it, without '..'")
    return folder / path


def files_of(folder: Path, pattern: str) -> list[Path]:
    """The sorted files below a folder that match a pattern such as train-*.parquet."""
    return sorted(path for path in folder.glob(pattern) if path.is_file() and not is_leftover(path.name))


def on_disk(folder: Path, relative: str) -> Path:
    """`folder`/`relative` in the spelling on disk, where accents may be encoded differently (macOS)."""
    path = folder / relative
    if relative.isascii() or path.exists():
        return path
    place = folder
    for part in Path(relative).parts:
        forms = (part, *(unicodedata.normalize(form, part) for form in ("NFC", "NFD")))
        place = next((place / form for form in forms if (place / form).exists()), place / part)
    return place


def is_leftover(name: str) -> bool:
    """Whether a file or folder is hidden, a leftover of an operating system or an archive, or the budget log.

    >>> [is_leftover(name) for name in (".DS_Store", "__MACOSX", "Thumbs.db", "dpstudy-spent.jsonl", "a17.png")]
    [True, True, True, True, False]
    """
    return name.startswith(".") or name.casefold() in _LEFTOVERS or name == _LOG


def class_names(options: dict, default: list[str] | None = None, file: Path | None = None) -> list[str]:
    """The class names: the option `classes` (a list, or a number of classes), else lines of `file`, else `default`.

    Raises:
        StudyError: no source names them, or a name is empty or stands twice.
    """
    given = options.get("classes")
    where = "classes"
    if isinstance(given, int) and not isinstance(given, bool):
        names = [str(index) for index in range(given)]
    elif given is not None and not isinstance(given, list | tuple):
        raise StudyError(f"classes: {given!r} is neither a list of names nor a number of classes")
    elif given is not None:
        names = [str(name) for name in given]
    elif file is not None and file.is_file():
        names, where = read_text(file).splitlines(), str(file)
    elif default is not None:
        names = list(default)
    else:
        raise StudyError(f"reader {options.get('reader')!r}: name the classes, in label order, in the key `classes`")
    names = [composed(name) for name in names]
    check_names(names, where)
    return names


def check_names(names: list[str], where: str) -> None:
    """Check that there are class names, none of them empty or repeated in any Unicode form.

    Raises:
        StudyError: naming the culprit.
    """
    if not names:
        raise StudyError(f"{where}: no class at all")
    seen = set()
    for row, name in enumerate(names):
        if not name.strip():
            raise StudyError(f"{where}: class {row} has an empty name")
        if composed(name) in seen:
            raise StudyError(f"{where}: the class {name!r} stands twice; class names must be unique")
        seen.add(composed(name))


def single_labels(values: np.ndarray, classes: list[str], where: str, first_row: int = 0) -> np.ndarray:
    """(n,) integers (or whole numbers such as 1.0) as int32 class indices.

    Messages count rows from `first_row`.

    Raises:
        StudyError: a label is no integer, or lies outside 0 .. len(classes) - 1.
    """
    values = np.asarray(values)
    if values.dtype.kind == "f" and np.array_equal(values, np.rint(values)):  # infinities lie outside, NaN is unequal
        values = np.clip(values, -1, len(classes)).astype(np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise StudyError(f"{where}: labels must be one integer a row, not {values.dtype} of shape {values.shape}")
    wrong = np.flatnonzero((values < 0) | (values >= len(classes)))
    if len(wrong):
        row = wrong[0]
        raise StudyError(
            f"{where}: row {first_row + row} has label {values[row]}, but the {len(classes)} classes are"
            f" 0 to {len(classes) - 1}"
        )
    return values.astype(np.int32)


def multi_labels(values: np.ndarray, classes: list[str], where: str, first_row: int = 0) -> np.ndarray:
    """(n, m) zeros and ones as int8; messages count rows from `first_row`.

    Raises:
        StudyError: there are not m = len(classes) columns, or a value is neither 0 nor 1.
    """
    values = np.asarray(values)
    if values.ndim != 2 or values.shape[1] != len(classes) or values.dtype.kind not in "iufb":
        raise StudyError(f"{where}: labels are {values.dtype} of shape {values.shape}, not (rows, {len(classes)}) 0/1")
    wrong = np.argwhere((values != 0) & (values != 1))
    if len(wrong):
        row, column = wrong[0]
        raise StudyError(
            f"{where}: row {first_row + row} has {values[row, column]} for {classes[column]!r}; it must be 0 or 1"
        )
    return values.astype(np.int8)


def check_unique(ids: np.ndarray, where: str) -> None:
    """Check that no id occurs twice.

    Raises:
        StudyError: naming the id and both rows.
    """
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if first.setdefault(name, row) != row:
            raise StudyError(f"{where}: rows {first[name]} and {row} have the same id {name!r}; ids must be unique")


def read_text(path: Path) -> str:
    """The text of a UTF-8 file.

    Raises:
        StudyError: it is missing or is not UTF-8.
    """
    try:
        with present(path):
            return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise StudyError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror}); a readable file must stand there") from None


def read_bytes(path: Path, count: int = -1) -> bytes:
    """The first `count` bytes of a file (all of them by default), decompressed if its name ends in .gz.

    Raises:
        StudyError: it is missing, or its gzip stream is damaged or cut short.
    """
    try:
        with present(path), gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            if count < 0:
                return file.read()
            blocks, left = [], count  # at once, all that is asked for would be allocated, however short the file is
            while left > 0 and (block := file.read(min(left, _BLOCK))):
                blocks.append(block)
                left -= len(block)
            return b"".join(blocks)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StudyError(f"{path}: damaged or truncated gzip file ({error}); fetch it again") from None
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror}); a readable file must stand there") from None
