"""Assignment of a machine's GPUs to jobs.

Snakemake counts GPUs and hands none out: without a scheduler that does, all jobs would compute on the first. So a job
locks a file for each GPU that it takes, for as long as it lives. The jobs of another user have other files, in a folder
that is this user's alone: who can write there could keep every job waiting, or have it open another file.
"""

import contextlib
import fcntl
import logging
import os
import re
import stat
import tempfile
from pathlib import Path
from urllib.parse import quote

from dpstudy.core.errors import StudyError

_DEVICE = re.compile("nvidia[0-9]+")
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_NO_FOLDER = (
    "{}: the locks that tell which GPU is taken cannot lie there ({}); remove it if it is yours, or set TMPDIR to a "
    "folder of your own"
)
_held: list[int] = []  # open files: a lock ends with its process


def take(count: int) -> None:
    """Make `count` GPUs that no other job has taken visible to this process and its children.

    Where a scheduler or the user has chosen some (CUDA_VISIBLE_DEVICES), it is among those. Nothing changes where there
    is no choice. Where too few are free, some are shared, which the log says.

    Raises:
        StudyError: the folder for the locks cannot be made, or is somebody else's.
    """
    devices = _devices()
    if count < 1 or len(devices) < 2 or (_VISIBLE in os.environ and count >= len(devices)):
        return  # a scheduler may number the GPUs of each job anew: a lock on a number would mean nothing
    taken: list[str] = []
    folder = _own_folder(Path(tempfile.gettempdir()) / f"dpstudy-gpus-{os.getuid()}")
    try:
        for device in devices:
            if len(taken) < count and (lock := _lock(quote(device, ""), folder)) is not None:
                _held.append(lock)
                taken.append(device)
    finally:
        os.close(folder)
    shared = [device for device in devices if device not in taken][: count - len(taken)]
    if shared:
        names = ", ".join(shared)
        logging.getLogger("dpstudy").warning("other jobs use these GPUs as well, since none is free: %s", names)
    os.environ[_VISIBLE] = ",".join(taken + shared)


def _devices() -> list[str]:
    """As CUDA counts or names them: from 0 on, whatever the devices' files are called."""
    if _VISIBLE in os.environ:
        return [name.strip() for name in os.environ[_VISIBLE].split(",") if name.strip()]
    return [str(number) for number in range(_count())]


def _count() -> int:
    return sum(_DEVICE.fullmatch(path.name) is not None for path in Path("/dev").glob("nvidia*"))


def _own_folder(path: Path) -> int:
    """A descriptor of a folder that only this user can enter, made where it is missing; others may write around it."""
    try:
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise StudyError(_NO_FOLDER.format(path, error.strerror)) from None
    status = os.fstat(folder)
    if status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077:
        return folder
    os.close(folder)
    raise StudyError(_NO_FOLDER.format(path, "it is open to others, or another user's"))


def _lock(name: str, folder: int) -> int | None:
    """The open file, or None where another process has locked it."""
    file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600, dir_fd=folder)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file
