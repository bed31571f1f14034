"""Atomic file output: every output is written under a temporary name and then renamed."""

import contextlib
import errno
import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpstudy.core.errors import StudyError

_DAY = 24 * 3600.0
# NumPy's names -> those in safetensors files, in the order in which these have them.
_TYPES = dict(zip(
    ("uint64", "int64", "float64", "float32", "uint32", "int32", "float16", "uint16", "int16", "int8", "uint8", "bool"),
    ("U64", "I64", "F64", "F32", "U32", "I32", "F16", "U16", "I16", "I8", "U8", "BOOL"),
    strict=True,
))  # fmt: skip
_CHECKSUM = "crc32"
_AGAIN = "delete it and run the study again"


@contextlib.contextmanager
def atomic(path: str | os.PathLike, private: bool = False, durable: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` on success, remove it on failure.

    Several processes may write the same output at once: the last one's stays. Temporary files that processes which died
    left of it are removed first.
    With `private`, the file is readable by its owner alone (it holds values of private records); with `durable`, it is
    on the disk when this returns, whatever becomes of the machine.

    Raises:
        StudyError: the disk is full, or the folder cannot be written to.
    """
    path = Path(path)
    with clear_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        for leftover in path.parent.glob(f".{path.name}.*.tmp"):
            if _is_of_the_dead(leftover):
                leftover.unlink(missing_ok=True)
        temporary = path.parent / f".{path.name}.{_machine()}.{os.getpid()}.tmp"
        try:
            if private:
                os.close(os.open(temporary, os.O_CREAT | os.O_WRONLY, 0o600))
            yield temporary
            if durable:
                sync(temporary)
            os.replace(temporary, path)
            if durable:
                sync(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _is_of_the_dead(temporary: Path) -> bool:
    """Whether the process that wrote a file of `atomic` is gone; another machine's is, where the file is a day old.

    A file that vanishes meanwhile was no dead one's.
    """
    *_, machine, process, _ = temporary.name.split(".")
    with contextlib.suppress(FileNotFoundError):
        if machine != _machine() or not process.isdigit():
            return time.time() - temporary.stat().st_mtime > _DAY
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # another user's
            return False
    return False


def _machine() -> str:
    """This machine's name, as part of the name of a file."""
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"


def sync(path: str | os.PathLike) -> None:
    """Flush a file, or the entries of a folder, to the disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def disk_trouble(error: BaseException) -> str | None:
    """A sentence on a full or read-only disk, or an exceeded quota, if an exception stems from one; else None.

    pyarrow and safetensors wrap the operating system's error in their own, of which the text is left.
    """
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT) or os.strerror(errno.ENOSPC) in str(error):
        return "the disk is full; free some space and run the same command again"
    if number == errno.EROFS or os.strerror(errno.EROFS) in str(error):
        return "cannot be written to, the disk is read-only; mount it for writing and run the same command again"
    return None


@contextlib.contextmanager
def clear_disk_errors(path: Path) -> Iterator[None]:
    """A context that turns disk errors while writing to `path` into a StudyError.

    Raises:
        StudyError: the disk is full, or `path` cannot be written to.
    """
    try:
        yield
    except Exception as error:
        if trouble := disk_trouble(error):
            raise StudyError(f"{path}: {trouble}") from error
        number = getattr(error, "errno", None)
        if number in (errno.EACCES, errno.EPERM):
            raise StudyError(f"{path}: cannot be written ({os.strerror(number)}); make its folder writable") from error
        raise


@contextlib.contextmanager
def present(path: str | os.PathLike) -> Iterator[None]:
    """Say of a file that is read within, and is missing, that there is none.

    Raises:
        StudyError: naming it.
    """
    try:
        yield
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file") from None


def write_json(path: str | os.PathLike, content: object, private: bool = False) -> None:
    """Write `content` as indented JSON; NaN and infinities are refused (ValueError).

    With `private`, the file is readable by its owner alone.
    """
    text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)
    with atomic(path, private) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: str | os.PathLike) -> dict:
    """Read a JSON file.

    Raises:
        StudyError: the file is missing or is not JSON.
    """
    try:
        with present(path):
            return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # or a number of thousands of digits, or lists in lists
        raise StudyError(f"{path}: not valid JSON ({error}); delete it and run the study again") from None


def write_table(path: str | os.PathLike, table, private: bool = False, **layout) -> None:
    """Write a pyarrow Table as parquet (zstd, unless `layout` differs), with a checksum on every page.

    Args:
        layout: options of pyarrow.parquet.write_table.
    """
    import pyarrow.parquet as parquet

    options = {"compression": "zstd", "write_page_checksum": True} | layout
    with atomic(path, private) as temporary:
        parquet.write_table(table, temporary, **options)


def read_table(
    path: str | os.PathLike, columns: list[str] | None = None, content: bytes | None = None, remedy: str = _AGAIN
):
    """Read a parquet file as a pyarrow Table and verify every page's checksum.

    `content` holds the file's bytes where they were read already, and `remedy` says what to do about a damaged file.

    Raises:
        StudyError: the file is missing or damaged, or two columns have one name.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    source = path if content is None else pa.BufferReader(content)
    try:
        with present(path):
            # On one thread: Arrow's threads now and then abort a process that ends soon after a read.
            table = parquet.ParquetFile(source, page_checksum_verification=True).read(columns, use_threads=False)
            names = table.column_names
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: names that are not UTF-8, for one
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise StudyError(f"{path}: damaged parquet file ({reason}); {remedy}") from None
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise StudyError(f"{path}: two columns have the name {twice!r}; rename one")
    return table


def column_values(path: str | os.PathLike, table, name: str) -> list:
    """The Python values of one column of the table read from `path`; None where one is missing.

    Raises:
        StudyError: a value has no counterpart: text that is not UTF-8, or a time that no calendar of Python's reaches.
    """
    try:
        return table.column(name).to_pylist()
    except Exception as error:  # each column type raises its own: decoding, overflow, time zones
        reason = (str(error) or type(error).__name__).splitlines()[0]
        kind = table.schema.field(name).type
        raise StudyError(f"{path}: the column {name!r} ({kind}) cannot be read ({reason}); write it as text") from None


def write_tensors(
    path: str | os.PathLike,
    tensors: dict[str, np.ndarray],
    metadata: dict[str, str] | None = None,
    private: bool = False,
    durable: bool = False,
) -> None:
    """Write numpy arrays as safetensors, with string metadata and a checksum of the values.

    Raises:
        ValueError: a tensor holds NaN or infinity; no such value reaches a file.
    """
    for name, tensor in tensors.items():
        if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise ValueError(f"{path}: tensor {name!r} holds a NaN or an infinity")
    contiguous = {
        name: np.ascontiguousarray(tensor, tensor.dtype.newbyteorder("<")) for name, tensor in tensors.items()
    }
    metadata = (metadata or {}) | {_CHECKSUM: _checksum(contiguous)}
    with atomic(path, private, durable) as temporary, open(temporary, "wb") as file:
        # safetensors.numpy.save holds three more copies of all values, and writes metadata in a random order
        header, ordered = _header(contiguous, metadata)
        file.write(header)
        for tensor in ordered:
            file.write(_bytes(tensor))


def _checksum(tensors: dict[str, np.ndarray]) -> str:
    value = 0
    for name in sorted(tensors):
        value = zlib.crc32(_bytes(tensors[name]), value)
    return f"{value:08x}"


def _bytes(tensor: np.ndarray) -> memoryview | bytes:
    return tensor.data.cast("B") if tensor.size else b""


def _header(tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> tuple[bytes, list[np.ndarray]]:
    """What a safetensors file begins with, and the tensors in the order in which they follow: the widest first."""
    types = {name: _TYPES[tensor.dtype.name] for name, tensor in tensors.items()}
    names = sorted(tensors, key=lambda name: (list(_TYPES.values()).index(types[name]), name))
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in names:
        start, end = end, end + tensors[name].nbytes
        header[name] = {"dtype": types[name], "shape": tensors[name].shape, "data_offsets": (start, end)}
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # tensors stay aligned
    return len(text).to_bytes(8, "little") + text, [tensors[name] for name in names]


def read_tensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Read every tensor of a safetensors file.

    Raises:
        StudyError: the file is missing or damaged, or its values are not those that were written.
    """
    tensors, metadata = _read_safetensors(path)
    if metadata.get(_CHECKSUM, written := _checksum(tensors)) != written:
        raise StudyError(f"{path}: its values have changed since they were written; delete it and run the study again")
    return tensors


def read_tensor_metadata(path: str | os.PathLike) -> dict[str, str]:
    """The string metadata of a safetensors file, as given to `write_tensors`."""
    metadata = _read_safetensors(path, tensors=False)[1]
    return {name: value for name, value in metadata.items() if name != _CHECKSUM}


def _read_safetensors(path, tensors: bool = True):
    from safetensors import SafetensorError, safe_open

    try:
        with present(path), safe_open(path, framework="numpy") as file:
            names = list(file.keys()) if tensors else []
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (SafetensorError, OSError, AttributeError, TypeError, ValueError) as error:  # numpy lacks some of its types
        raise StudyError(f"{path}: damaged safetensors file ({error}); delete it and run the study again") from None


def sha256(path: str | os.PathLike) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal.

    Raises:
        StudyError: the file is missing.
    """
    with present(path), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
