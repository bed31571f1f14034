"""Trainings that die, or find the disk full, at a point of one's choice: each in a process of its own."""

import errno
import json
import multiprocessing
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.cell.paid_training import take_or_train
from dpstudy.core.errors import StudyError
from dpstudy.jobs.training import train_cell
from dpstudy.privacy.noise import NoiseSource

DEATH = 9
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "shutil.copyfile", "shutil.rmtree")
_NEEDS_ROOM = ("open", "os.mkdir", "os.fsync", "shutil.copyfile")
# What a training imports when it comes to it, once for all of them.
_IMPORTED = ("jsonschema", "safetensors.numpy", "scipy.linalg", "scipy.optimize", "dpstudy.methods.network_dpsgd")


@dataclass(frozen=True)
class Training:
    """What a process trains, and the folder below which its points are counted."""

    request: CellRequest
    inputs: CellInputs
    outputs: dict[str, str]
    folder: str


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit status, the points that it came to, how often it drew noise, what it said."""

    status: int
    points: tuple[str, ...] = ()
    draws: int = 0
    said: str = ""


class _Points:
    """Counts what a process does to its files, and each draw of noise; does something at one of them."""

    def __init__(self, folder: str, at: int | str | None, full: bool):
        self.folder, self.at, self.full = folder, at, full
        self.names: list[str] = []
        self.draws = 0

    def reach(self, name: str) -> None:
        self.names.append(name)
        number = len(self.names) - 1
        if self.at is None:
            return
        if not self.full and self.at in (number, name):
            os._exit(DEATH)
        if self.full and number >= self.at and name.partition(" ")[0] in _NEEDS_ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def hook(self, event: str, arguments: tuple) -> None:
        if event not in ("open", *_CHANGES):
            return
        if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        path = arguments[1 if event in ("os.rename", "shutil.copyfile") else 0]
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(self.folder):
            self.reach(f"{event} {Path(path).name}")


def _work(training: Training, at: int | str | None, full: bool, answer) -> None:
    points = _Points(training.folder, at, full)
    fsync, enter = os.fsync, NoiseSource._enter

    def counted_fsync(descriptor):
        points.reach("os.fsync")
        fsync(descriptor)

    def counted_enter(source, name, std, step, tensor):
        if (name, step) not in source._used:  # once for all tensors of a release
            points.reach("draw")
            points.draws += 1
        return enter(source, name, std, step, tensor)

    os.fsync, NoiseSource._enter = counted_fsync, counted_enter
    sys.addaudithook(points.hook)
    status, said = 0, ""
    request, inputs, outputs = training.request, training.inputs, training.outputs
    try:
        take_or_train(request, inputs, outputs, lambda: train_cell(request, inputs, outputs))
    except StudyError as error:
        status, said = 1, str(error)
    except BaseException:
        status, said = 2, traceback.format_exc()
    points.at = None
    answer.send(json.dumps([status, points.names, points.draws, said]))


def run(training: Training, at: int | str | None = None, full: bool = False) -> Ended:
    """Train, or take, in a new process, which dies as by SIGKILL before its point `at`, a number or a name, or finds
    the disk full from that number on."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *_IMPORTED])
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(training, at, full, there))
    process.start()
    there.close()
    try:
        status, points, draws, said = json.loads(here.recv())
    except EOFError:
        process.join()
        return Ended(process.exitcode or 0)
    process.join()
    return Ended(status, tuple(points), draws, said)
