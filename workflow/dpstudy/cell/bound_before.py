"""A cache of cells whose files were found to belong together, so that unchanged files are not read at every start."""

import contextlib
import hashlib
import json
import os
from pathlib import Path

from dpstudy.cell import bound
from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic, read_json, sha256

_KEPT = ".snakemake/dpstudy-bound.json"
_FILES = (bound.MODEL, bound.SCORES, bound.LEDGER, bound.CURVE, bound.RUN, bound.METRICS)


class BoundBefore:
    """`Binding.faults` with a cache: a cell is checked again only when its files have changed.

    A file that was put in the place of another has another number on its disk or another time of change (ctime),
    which nobody can set, whatever time of modification it was given.

    Args:
        path: where the cells that were found so are kept.
    """

    def __init__(self, binding: bound.Binding, path: str = _KEPT):
        self.binding, self._path, self._mark = binding, path, sha256(bound.__file__)
        try:
            known: object = read_json(path)
        except StudyError:
            known = None
        self._known = known if isinstance(known, dict) else {}
        self._before = dict(self._known)

    def faults(self, cell: str, metrics: bool = True) -> list[str]:
        """See `Binding.faults`."""
        key = cell if metrics else f"{cell} without metrics"
        present = self._signature(cell)
        if self._known.get(key) == present:
            return []
        if not (faults := self.binding.faults(cell, metrics)):
            self._known[key] = present
        return faults

    def keep(self) -> None:
        """Save the cache; a failure to write is ignored."""
        if self._known == self._before:
            return
        with contextlib.suppress(OSError, StudyError), atomic(self._path, private=True) as temporary:
            temporary.write_text(json.dumps(self._known), encoding="utf-8")

    def _signature(self, cell: str) -> str:
        """A hash of what the system knows of a cell's files, and of what the book has of it."""
        cells, runs = (Path(self.binding.results, room, cell) for room in ("cells", "runs"))
        paid = self.binding.paid.of(cell) if self.binding.paid else {}
        facts: list = [self._mark, sorted(paid.items())]
        for folder in (cells, *sorted(runs.glob("seed=*"))):
            for name in _FILES:
                with contextlib.suppress(OSError):
                    stat = os.stat(folder / name)
                    facts.append([str(folder / name), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns])
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
