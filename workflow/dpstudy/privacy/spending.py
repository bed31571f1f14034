"""What trainings with secure noise have spent: a line each, kept for good. Noise that is drawn again spends again."""

import datetime
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dpstudy.errors import StudyError


class Spending:
    """A file of lines {"when", "dataset", "records", "cell", "seed", "ledger"}.

    Args:
        path: results/privacy/spent.jsonl.
        again: a cell may be trained once more; what that spends is written down like the first.
    """

    def __init__(self, path: str | os.PathLike, again: bool = False):
        self._path, self.again = Path(path), again

    def entries(self) -> Iterator[dict]:
        """Its lines, from the first.

        Raises:
            StudyError: a line is damaged.
        """
        if not self._path.exists():
            return
        for number, line in enumerate(self._path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                yield json.loads(line)
            except ValueError:
                raise StudyError(
                    f"{self._path}: line {number} is damaged; nobody can tell what was spent. Mend it by hand"
                ) from None

    def check(self, cell: str, seeds: Sequence[int]) -> None:
        """Refuse to train a cell with secure noise that was trained before.

        Raises:
            StudyError: it was, and nobody said that it may be again.
        """
        if self.again:
            return
        for entry in self.entries():
            if entry["cell"] == cell and entry["seed"] in seeds:
                raise StudyError(
                    f"cell {cell}: it was trained with secure noise on {entry['when'][:10]}, which spent privacy; "
                    f"training it again spends as much again. If nobody has seen what came of it, remove its lines "
                    f"from {self._path}; else write release: {{spend_again: true}}"
                )

    def record(self, dataset: str, cell: str, seed: int, ledger: Mapping, records: str = "") -> None:
        """Add a line; jobs that do so at the same time wait for each other.

        Args:
            records: which records these are, whatever the data set is called (study/locations.py).
        """
        entry = {
            "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            **{"dataset": dataset, "records": records, "cell": cell, "seed": seed, "ledger": dict(ledger)},
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
