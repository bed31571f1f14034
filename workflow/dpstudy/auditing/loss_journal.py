"""A journal of the losses that a black-box audit has measured, so that it resumes after a kill."""

import json
import os
from pathlib import Path

from dpstudy.core.errors import StudyError


class LossJournal:
    """The losses of the models trained so far, one line each, in a file that only its owner can read.

    Args:
        path: of the file, which need not exist; a line that a kill cut short is dropped.
        made_by: what the losses depend on; those of anything else are dropped too.

    Raises:
        StudyError: the file is damaged.
    """

    def __init__(self, path: str | os.PathLike, made_by: str):
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        whole = self._file.read().rpartition(b"\n")
        head = json.dumps(made_by).encode()
        lines = whole[0].split(b"\n") if whole[1] else []
        if lines[:1] != [head]:
            lines = [head]
            self._file.seek(0)
            self._file.truncate()
            self._write(head)
        else:
            self._file.truncate(len(whole[0]) + 1)
            self._file.seek(0, os.SEEK_END)
        self._known: dict[str, list[list[float]]] = {}
        for line in lines[1:]:
            try:
                key, losses = json.loads(line)
                self._known.setdefault(key, []).append([float(loss) for loss in losses])
            except (ValueError, TypeError):
                raise StudyError(f"{path}: damaged; delete it and run the study again") from None

    def known(self, key: object) -> list[list[float]]:
        """The losses of the models trained at one setting, in the order of their training."""
        return self._known.get(str(key), [])

    def add(self, key: object, losses: list[float]) -> None:
        """Append the losses of one more model at a setting."""
        self._write(json.dumps([str(key), losses]).encode())

    def remove(self) -> None:
        """Delete the journal, once the audit is complete."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _write(self, line: bytes) -> None:
        self._file.write(line + b"\n")
        self._file.flush()
