"""Downloaded files, accepted only if their SHA-256 is as expected."""

import contextlib
import fcntl
import http.client
import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic, sha256

_TIMEOUT_SECONDS = 60
_FETCH_ERRORS = (
    urllib.error.URLError,
    http.client.HTTPException,
    ssl.SSLError,
    TimeoutError,
    ConnectionError,
    ValueError,
)


def fetch(folder: Path, downloads: dict[str, dict]) -> None:
    """Download each file that `folder` lacks, and name it only once its SHA-256 is verified.

    Args:
        downloads: file name -> {"url": ..., "sha256": 64 hexadecimal digits}.

    Raises:
        StudyError: a file cannot be fetched, or is not the one that was promised.
    """
    for name, source in downloads.items():
        if Path(name).name != name or name in ("", "..") or "\0" in name:  # pathlib calls these names too
            raise StudyError(f"download: {name!r} must be a plain file name")
        if not isinstance(source, dict) or not {"url", "sha256"} <= set(source):
            raise StudyError(f"download: {name!r} needs the keys `url` and `sha256`")
    if all((folder / name).exists() for name in downloads):
        return
    with _one_at_a_time(folder):
        for name, source in downloads.items():
            if not (folder / name).exists():
                _fetch_one(folder / name, source["url"], str(source["sha256"]).lower())


def _fetch_one(path: Path, url: str, expected: str) -> None:
    with atomic(path) as temporary:
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response, open(temporary, "wb") as file:
                shutil.copyfileobj(response, file)
        except _FETCH_ERRORS as error:
            raise StudyError(
                f"{path}: cannot be fetched from {url} ({error}); fetch it by hand into this folder"
            ) from None
        digest = sha256(temporary)
        if digest != expected:
            raise StudyError(f"{path}: {url} has SHA-256 {digest}, not {expected}; it was not kept")


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    # the shards of a data set are separate jobs, and each of them opens the reader
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / ".download.lock", "w")
    except OSError as error:
        raise StudyError(f"{folder}: cannot be written to ({error.strerror}), so nothing can be fetched") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
