"""What trainings with secure noise have spent: a line each, kept for good. Noise that is drawn again spends again.

Where the owner sets a ceiling, all trainings on the same records together stay below it. It is held when a training is
written down, which is before anything of it is kept: of two that end at the same time, and do not both fit, the second
is refused and leaves nothing.
"""

import datetime
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dpstudy.errors import StudyError
from dpstudy.privacy.printed import upper_bound

BOOK = "results/privacy/spent.jsonl"
CONTENT = "content"  # "ids" of a line: records without names were named by what they hold


class BeyondBudgetError(StudyError):
    """With a training more would be spent than the owner allows, or nobody can tell."""


class Spending:
    """A file of lines {"when", "dataset", "records", "cell", "seed", "ledger", "files", "ids"}.

    Lines of earlier versions have no "files", the hashes of what lies in the store of paid models; those of data sets
    whose rows go by number (`numbered`) have no "ids".

    Args:
        path: BOOK, but in tests.
        again: a cell may be trained once more; what that spends is written down like the first.
        ceiling: the most epsilon that trainings on the same records may spend together; None: as much as they want.
    """

    def __init__(self, path: str | os.PathLike, again: bool = False, ceiling: str | None = None):
        self.path, self.again, self.ceiling = Path(path), again, ceiling

    def entries(self) -> Iterator[dict]:
        """Its lines, from the first.

        Raises:
            StudyError: a line is damaged.
        """
        if not self.path.exists():
            return
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                yield json.loads(line)
            except ValueError:
                raise StudyError(
                    f"{self.path}: line {number} is damaged; nobody can tell what was spent. Mend it by hand"
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
                    "training it again spends as much again. `make status` says what was changed: undo that. If nobody "
                    f"has seen what came of it, remove its lines from {self.path} and the folder results/cells/{cell};"
                    " else write release: {spend_again: true} (docs/own-data.md)"
                )

    def afford(self, dataset: str, cell: str, seeds: Sequence[int], ledger: Mapping, records: str = "") -> None:
        """Refuse what would go beyond the ceiling together with all that was spent on the same records.

        Args:
            ledger: of each of the seeds; its delta is the one at which all of it is added up.
            records: as of `record`.

        Raises:
            BeyondBudgetError: it would, or nobody can tell.
            StudyError: the book is damaged.
        """
        if self.ceiling is None:
            return
        past = [entry["ledger"] for entry in self.entries() if about(entry, dataset, records)]
        budget = f"release: {{budget: {self.ceiling}}}"
        if ledger["unit"] == "subject" and any(one["unit"] != "subject" for one in past):
            raise BeyondBudgetError(
                f"cell {cell}: trainings before it protect single records and bound nothing for persons: nobody can "
                f"tell whether it keeps {budget}"
            )
        spent = _total([(one, 1) for one in past] + [(ledger, len(seeds))], ledger["delta"])
        if spent is None:
            raise BeyondBudgetError(
                f"cell {cell}: its guarantee is {ledger['guarantee']!r}, without a bound, beyond {budget}"
            )
        if spent > float(self.ceiling):
            before = _total([(one, 1) for one in past], ledger["delta"]) if past else 0.0
            raise BeyondBudgetError(
                f"cell {cell}: with it trainings would have spent ε = {upper_bound(spent)} on these records (before it "
                f"{upper_bound(before or 0.0)}), beyond {budget}; leave it out, or take a smaller ε"
            )

    def numbered(self, dataset: str, records: str) -> bool:
        """Whether the rows of a data set go by their numbers because trainings knew them so before names were made of
        what records hold (data/own_names.py): under other names, models that are paid for would be of other data.

        Args:
            records: as of `record`; the folder that is read first, and its reader, must be the same.
        """
        return any(
            _first(entry["records"]) == _first(records)
            if entry.get("records") and records
            else entry["dataset"] == dataset
            for entry in self.entries()
            if "ids" not in entry
        )

    def record(
        self,
        dataset: str,
        cell: str,
        seeds: int | Sequence[int],
        ledger: Mapping,
        records: str = "",
        files: Mapping[str, str] | None = None,
    ) -> None:
        """Add a line a seed; jobs that do so at the same time wait for each other.

        A total.json beside the book does not know of them, and somebody might publish by it: it goes, and the next run
        of the study makes it anew.

        Args:
            records: which records these are, whatever the data set is called (study/locations.py).
            files: name -> SHA-256 of what was made (privacy/paid_store.py).

        Raises:
            StudyError: as of `afford`; then nothing is added.
        """
        seeds = [seeds] if isinstance(seeds, int) else seeds
        when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        entry = {"when": when, "dataset": dataset, "records": records, "cell": cell}
        told = {"ledger": dict(ledger)} | ({"files": dict(files)} if files else {})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.afford(dataset, cell, seeds, ledger, records)
            if not self.numbered(dataset, records):
                entry["ids"] = CONTENT
            self.path.with_name("total.json").unlink(missing_ok=True)
            file.writelines(json.dumps(entry | {"seed": seed} | told) + "\n" for seed in seeds)
            file.flush()
            os.fsync(file.fileno())


def about(entry: Mapping, dataset: str, records: str | None) -> bool:
    """Whether a line of the book may be about some of these records (locations.records_of): the same folder was read,
    or one around the other. Old lines know no folders around, or the data set's name alone."""
    if not (entry.get("records") and records):
        return entry["dataset"] == dataset
    (own, around), (other, around_other) = map(_names, (entry["records"], records))
    return not (own.isdisjoint(other | around_other) and around.isdisjoint(other))


def _names(records: str) -> tuple[set[str], set[str]]:
    """Names of the folders that are read, and of those around them."""
    own, _, around = records.partition("<")
    return set(own.split("+")), set(around.split("+")) - {""}


def _first(records: str) -> str:
    """The first of the names: of the folder that is read first, and its reader."""
    return records.partition("<")[0].partition("+")[0]


def _total(ledgers: Sequence[tuple[Mapping, int]], delta: float) -> float | None:
    """The epsilon of all of them together; None where one has no proved guarantee."""
    from dpstudy.privacy.ledger_sums import total

    return total([(dict(ledger), seeds) for ledger, seeds in ledgers], delta, same_parts=False)["epsilon"]
