"""Which of a machine's GPUs a job uses.

Snakemake counts GPUs and hands none out: without a scheduler that does, all jobs would compute on the first. So a job
locks a file for each GPU that it takes, for as long as it lives.
"""

import fcntl
import logging
import os
import re
import tempfile
from pathlib import Path

_DEVICE = re.compile("nvidia([0-9]+)")
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_held: list[int] = []  # open files: a lock ends with its process


def take(count: int) -> None:
    """Let this process and those that it starts see `count` GPUs that no other job has taken.

    Nothing changes where a scheduler or the user has chosen (CUDA_VISIBLE_DEVICES is set), or where there is no choice.
    Where too few are free, some are shared, which the log says.
    """
    devices = _devices()
    if count < 1 or _VISIBLE in os.environ or len(devices) < 2:
        return
    folder = Path(tempfile.gettempdir()) / f"dpstudy-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    taken: list[int] = []
    for device in devices:
        if len(taken) < count and (lock := _lock(folder / str(device))) is not None:
            _held.append(lock)
            taken.append(device)
    shared = [device for device in devices if device not in taken][: count - len(taken)]
    if shared:
        logging.getLogger("dpstudy").warning("GPUs %s are used by other jobs as well: none is free", shared)
    # by bus: CUDA's own order, the fastest first, need not be that of the devices' names
    os.environ |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", _VISIBLE: ",".join(map(str, taken + shared))}


def _devices() -> list[int]:
    found = (_DEVICE.fullmatch(path.name) for path in Path("/dev").glob("nvidia*"))
    return sorted(int(match[1]) for match in found if match)


def _lock(path: Path) -> int | None:
    """The open file, or None where another process has locked it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file
