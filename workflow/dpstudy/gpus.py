"""Which of a machine's GPUs a job uses.

Snakemake counts GPUs and hands none out: without a scheduler that does, all jobs would compute on the first. So a job
locks a file for each GPU that it takes, for as long as it lives. The jobs of another user have other files.
"""

import fcntl
import logging
import os
import re
import tempfile
from pathlib import Path
from urllib.parse import quote

_DEVICE = re.compile("nvidia[0-9]+")
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_held: list[int] = []  # open files: a lock ends with its process


def take(count: int) -> None:
    """Let this process and those that it starts see `count` GPUs that no other job has taken.

    Where a scheduler or the user has chosen some (CUDA_VISIBLE_DEVICES), it is among those. Nothing changes where there
    is no choice. Where too few are free, some are shared, which the log says.
    """
    devices = _devices()
    if count < 1 or len(devices) < 2 or (_VISIBLE in os.environ and count >= len(devices)):
        return  # a scheduler's numbers may mean other GPUs in another of its jobs: a lock would tell nothing
    folder = Path(tempfile.gettempdir()) / f"dpstudy-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    taken: list[str] = []
    for device in devices:
        if len(taken) < count and (lock := _lock(folder / quote(device, ""))) is not None:
            _held.append(lock)
            taken.append(device)
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


def _lock(path: Path) -> int | None:
    """The open file, or None where another process has locked it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file
