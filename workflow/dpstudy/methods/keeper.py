"""Checkpoints of a long training, from which a killed run ends as it would have ended without the interruption.

A checkpoint holds what was released (iterates and what the optimiser made of them), never a batch or a gradient. With
seeded noise the steps after it are drawn as they would have been; with secure noise they are drawn anew, what was lost
with the killed process has left nowhere, and the training is written down as soon as there is a checkpoint. One that
failed leaves none to go on from (`failure_paid`).
"""

import json
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensor_metadata, read_tensors, write_tensors

_log = logging.getLogger("dpstudy")


class Keeper:
    """The checkpoint of one training run.

    Args:
        path: of its file, which need not exist.
        made_by: what the run depends on; a checkpoint of another run is not used.
        minutes: at least so much time between checkpoints; 0: one a step.
        steps: one after so many steps too, however little time they took; 0: by time alone.
        book: given the name of a training as soon as a checkpoint of it is on the disk, before training goes on from it
            or beyond it; may be given it again.

    Attributes:
        curve: rows that the caller collects along training; they are kept with the rest.
        training: the name, a random one, of the training that the checkpoint is of.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        made_by: object,
        minutes: float,
        steps: int = 0,
        book: Callable[[str], None] | None = None,
    ):
        self.curve: list[tuple] = []
        self.training = secrets.token_hex(8)
        self._book = book
        self._path, self._made_by = Path(path), json.dumps(made_by, sort_keys=True)
        self._seconds, self._saved, self._steps = 60 * minutes, time.monotonic(), steps
        self._started, self._before = time.monotonic(), 0.0

    @property
    def seconds(self) -> float:
        """The seconds of training so far, those of interrupted runs included up to their last checkpoint."""
        return self._before + time.monotonic() - self._started

    def load(self) -> tuple[dict[str, np.ndarray], dict] | None:
        """The tensors and facts of this run's last checkpoint; None where there is none.

        Raises:
            StudyError: the book refuses it.
        """
        try:
            facts = read_tensor_metadata(self._path)
            tensors = read_tensors(self._path)
        except StudyError:
            return None  # no checkpoint yet, or a damaged one: training starts anew
        if facts.get("made_by") != self._made_by:
            _log.info("%s is of another config, code or data: training starts anew", self._path)
            return None
        self.curve[:] = [tuple(row) for row in json.loads(facts["curve"])]  # in place: the caller appends to this list
        self._before = float(facts["seconds"])
        known = json.loads(facts["facts"])
        self.training = facts.get("training", self.training)
        self._write_down()
        _log.info("training goes on after step %s, from %s", known.get("done"), self._path)
        return tensors, known

    def due(self, done: int = 0) -> bool:
        """Whether a checkpoint is due, after `done` steps."""
        by_steps = bool(self._steps and done and done % self._steps == 0)
        return by_steps or time.monotonic() - self._saved >= self._seconds

    def save(self, tensors: Mapping[str, np.ndarray], facts: Mapping) -> None:
        """Write a checkpoint over the last; a run that has diverged keeps its last finite one.

        Raises:
            StudyError: the disk is full, or the book refuses the training; then there is none.
        """
        if not all(np.isfinite(value).all() for value in tensors.values()):
            return
        metadata = {
            "made_by": self._made_by,
            "curve": json.dumps(self.curve),
            "seconds": str(self.seconds),
            "training": self.training,
            "facts": json.dumps(facts),
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_tensors(self._path, dict(tensors), metadata, private=True, durable=self._book is not None)
        self._write_down()
        self._saved = time.monotonic()

    def _write_down(self) -> None:
        """Enter the training in the budget log, once: a training that was begun is entered in full."""
        if self._book:
            self._book(self.training)
            self._book = None

    def remove(self) -> None:
        """Delete the checkpoint: the run is complete."""
        self._path.unlink(missing_ok=True)
