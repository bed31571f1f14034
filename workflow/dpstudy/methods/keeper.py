"""Checkpoints of a long training: what a killed run needs to end as it would have ended.

A checkpoint holds what was released (iterates and what the optimiser made of them), never a batch or a gradient. With
seeded noise the steps after it are drawn as they would have been; with secure noise they are drawn anew, and what was
lost with the killed process has left nowhere.
"""

import json
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dpstudy.errors import StudyError
from dpstudy.files import read_tensor_metadata, read_tensors, write_tensors

_log = logging.getLogger("dpstudy")


class Keeper:
    """The checkpoint of one run.

    Args:
        path: of its file, which need not exist.
        made_by: what the run depends on; a checkpoint of another run is not used.
        minutes: at least so much time between checkpoints; 0: one a step.
        steps: one after so many steps too, however little time they took; 0: by time alone.

    Attributes:
        curve: rows that the caller collects along training; they are kept with the rest.
    """

    def __init__(self, path: str | os.PathLike, made_by: object, minutes: float, steps: int = 0):
        self.curve: list[tuple] = []
        self._path, self._made_by = Path(path), json.dumps(made_by, sort_keys=True)
        self._seconds, self._saved, self._steps = 60 * minutes, time.monotonic(), steps
        self._started, self._before = time.monotonic(), 0.0

    @property
    def seconds(self) -> float:
        """How long the run has worked, interrupted runs included up to their last checkpoint."""
        return self._before + time.monotonic() - self._started

    def load(self) -> tuple[dict[str, np.ndarray], dict] | None:
        """The tensors and facts of the last checkpoint; None where there is none of this run."""
        try:
            facts = read_tensor_metadata(self._path)
            tensors = read_tensors(self._path)
        except StudyError:
            return None  # none yet, or damaged: from the start
        if facts.get("made_by") != self._made_by:
            _log.info("%s is of another config, code or data: training starts anew", self._path)
            return None
        self.curve[:] = [tuple(row) for row in json.loads(facts["curve"])]  # whoever writes to it goes on
        self._before = float(facts["seconds"])
        known = json.loads(facts["facts"])
        _log.info("training goes on after step %s, from %s", known.get("done"), self._path)
        return tensors, known

    def due(self, done: int = 0) -> bool:
        """Whether it is time for a checkpoint, after `done` steps."""
        by_steps = bool(self._steps and done and done % self._steps == 0)
        return by_steps or time.monotonic() - self._saved >= self._seconds

    def save(self, tensors: Mapping[str, np.ndarray], facts: Mapping) -> None:
        """Replace the checkpoint; a run that has diverged keeps its last finite one."""
        if not all(np.isfinite(value).all() for value in tensors.values()):
            return
        metadata = {
            "made_by": self._made_by,
            "curve": json.dumps(self.curve),
            "seconds": str(self.seconds),
            "facts": json.dumps(facts),
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_tensors(self._path, dict(tensors), metadata)
        self._saved = time.monotonic()

    def remove(self) -> None:
        """Delete the checkpoint: the run is complete."""
        self._path.unlink(missing_ok=True)
