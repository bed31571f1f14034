"""The budget log: a permanent line for each training with secure noise, since redrawn noise spends again.

Where the owner sets a ceiling, all trainings on the same records together stay below it. It is held when a training is
written down, which is before anything of it leaves the store: of two that end at the same time, and do not both fit,
the second is refused and leaves nothing.

A training that keeps checkpoints, which hold what was released, is written down when the first of them is there, with
all that it will spend; the line that it ends with is of the same `training`, and counts instead. So is one that fails
after noise was drawn: whether it does depends on the noise and the records, and to draw until one succeeds is a choice
that nobody pays for.

The file is replaced as a whole, and lies on the disk before anybody goes on: a kill, a full disk or a power cut leaves
the old lines or the new ones.
"""

import contextlib
import datetime
import fcntl
import json
import os
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic, clear_disk_errors
from dpstudy.privacy.data_book import DataBook, merged, once
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.spent_lines import (
    about,
    first_name,
    has_failed,
    identity,
    is_begun,
    lost_in_words,
    of_trainings,
    read_lines,
)
from dpstudy.privacy.spent_sums import Protected, beyond, spent_for, unbudgeted

BOOK = "results/privacy/spent.jsonl"
_CHANGED = "`make status` says what was changed: undo that."
_GONE = "What was made is there no more (removed, or wiped)."
CONTENT = "content"  # value of a line's "ids" where records without names are named by their content


# Alternatives for a user who wants another model; both spend privacy budget again.
ANOTHER = (
    "To have another model beside it, give the entry or the data set another name; to have one in its place, write "
    "release: {spend_again: true}: either spends privacy once more (docs/own-data-reference.md)"
)


class BeyondBudgetError(StudyError):
    """A training would exceed the owner's budget, or the total cannot be bounded."""


class OvertakenError(Exception):
    """Another process has meanwhile finished the same training and logged it."""


class Spending:
    """A budget log, with lines {"when", "dataset", "records", "cell", "seed", "ledger", "config", "files", ...}.

    Further keys are "training", "failed", "ids", "id", and "folders", which were read.

    "files" are the hashes of what lies in the store of paid models. A line without them is of a training that was begun
    ("training" names it, as the line does that it ends with), and that has come to nothing if it "failed"; or of an
    earlier version, as is one without "config", its fingerprint. Lines of data sets whose rows go by number
    (`numbered`) have no "ids".

    Args:
        path: BOOK, but in tests.
        again: a cell may be trained once more with other settings or records; what that spends is written down like
            the first.
        ceiling: the most epsilon that trainings on the same records may spend together, whatever folder they run in;
            None: as much as they want.
        shared: books beside the data (data_book.py), which hold what other folders spend.
        others: the owner says that lines beside the data whose folder is not found are about other records; else they
            count.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        again: bool = False,
        ceiling: str | None = None,
        shared: Sequence[str | os.PathLike] = (),
        others: bool = False,
    ):
        self.path, self.again, self.ceiling, self.others = Path(path), again, ceiling, others
        self.shared = [DataBook(name) for name in once(shared)]

    def entries(self) -> Iterator[dict]:
        """The lines of the log, from the first.

        Raises:
            StudyError: a line is damaged, or no entry.
        """
        return read_lines(self.path)

    def trainings(self) -> list[dict]:
        """One line per training: of one that was begun and has ended, the line written at its end."""
        return of_trainings(list(self.entries()))

    def _paths(self) -> list[str]:
        return [str(self.path), *(str(book.path) for book in self.shared)]

    def everywhere(self) -> list[dict]:
        """One line per training, including those in other folders' logs.

        Raises:
            StudyError: a line of a book is damaged.
        """
        return of_trainings(merged(list(self.entries()), self.shared, self.others))

    def tell_others(self) -> None:
        """Copy lines that only this log has into those beside the data, as after an older version.

        Raises:
            StudyError: one of them cannot be written.
        """
        with self._locked():
            entries = list(self.entries())
            for book in self.shared:
                book.add(entries)

    def restore(self, lines: Sequence[dict]) -> None:
        """Write lines of this folder's trainings, which only a log beside the data has, into this log.

        Args:
            lines: of `missing`.

        Raises:
            StudyError: it cannot be written.
        """
        with self._locked():
            here = {identity(entry) for entry in self.entries()}
            self._append([line for line in lines if identity(line) not in here])

    def _append(self, lines: Sequence[dict]) -> None:
        """The caller holds the lock."""
        before = self.path.read_bytes() if self.path.exists() else b""
        if before and not before.endswith(b"\n"):
            before += b"\n"  # an edit by hand may have left out the final newline
        with atomic(self.path, private=True, durable=True) as temporary:
            temporary.write_bytes(before + "".join(json.dumps(line) + "\n" for line in lines).encode())

    def check(self, cell: str, seeds: Sequence[int], training: str | None = None) -> None:
        """Refuse to train a cell with secure noise that was trained, or begun, before.

        Args:
            training: that goes on, from its checkpoint.

        Raises:
            StudyError: it was, and nobody said that it may be again.
        """
        if self.again:
            return
        for entry in self.trainings():
            if entry["cell"] != cell or entry["seed"] not in seeds:
                continue
            if not is_begun(entry):
                places = self.path.with_name("paid"), self.path.parents[1]  # the store, and what was published
                kept = any((place / "cells" / cell).is_dir() for place in places)
                bundle = self.path.parents[1] / "release" / cell
                removal = (
                    f"A bundle of it stands in {bundle}."
                    if bundle.is_dir()
                    else f"If nobody has seen what came of it, remove its lines from {' and '.join(self._paths())} and "
                    "its folders in results/cells, results/runs (of networks) and results/privacy/paid/cells."
                )
                raise StudyError(
                    f"cell {cell}: it was trained with secure noise on {entry['when'][:10]}, which spent privacy; "
                    f"training it again spends as much again. {_CHANGED if kept else _GONE} {removal} {ANOTHER}"
                )
            if has_failed(entry):
                raise StudyError(
                    f"cell {cell}: its training of seed {entry['seed']} with secure noise failed on "
                    f"{entry['when'][:10]}, after noise was drawn ({entry['failed']}); that spent privacy, and to "
                    f"train it once more spends as much again. {ANOTHER}"
                )
            if entry["training"] != training:
                raise StudyError(
                    f"cell {cell}: its training of seed {entry['seed']} was begun with secure noise on "
                    f"{entry['when'][:10]}, with other settings, or its checkpoint is gone; to begin again spends as "
                    f"much again. Undo what was changed, and it goes on. {ANOTHER}"
                )

    def afford(
        self,
        dataset: str,
        cell: str,
        seeds: Sequence[int],
        ledger: Mapping,
        records: str = "",
        training: str | None = None,
    ) -> None:
        """Refuse a training that would exceed the budget together with all spending on the same records.

        Args:
            ledger: of each of the seeds.
            records, training: as of `record`.

        Raises:
            BeyondBudgetError: it would, or nobody can tell.
            StudyError: the book is damaged.
        """
        if self.ceiling is None:
            return
        past = [
            entry["ledger"]
            for entry in self.everywhere()
            if about(entry, dataset, records) and not (training and _goes_on(entry, training))
        ]
        if reason := beyond(cell, self.ceiling, past, ledger, len(seeds)):
            raise BeyondBudgetError(reason + self.lost(dataset, records))

    def hopeless(self, dataset: str, cell: str, epsilon: str, delta: float, records: str, protected: Protected) -> str:
        """The reason why no training of a cell can keep within the budget, by the log alone; "" where one may.

        Args:
            epsilon: the target, as in the config.
            protected: by the cell.

        Raises:
            StudyError: the book is damaged.
        """
        if self.ceiling is None:
            return ""
        budget = f"release: {{budget: {self.ceiling}}}"
        if epsilon == "inf":
            return f"cell {cell}: without noise it has no bound, and so is beyond {budget}; leave the cell out"
        before = self.before(dataset, self.smallest_delta(dataset, delta, records), records, protected, [cell])
        if isinstance(before, str):
            return unbudgeted(cell, before, self.ceiling) + self.lost(dataset, records)
        if before < float(self.ceiling):
            return ""
        spent = f"ε = {upper_bound(before)} is spent on these records, those of other folders included"
        larger = "leave the cell out, or decide on a larger budget (`make plan` says what the study comes to)"
        return f"cell {cell}: nothing is left of {budget} ({spent}); {larger}{self.lost(dataset, records)}"

    def before(
        self, dataset: str, delta: float, records: str, protected: Protected, cells: Collection[str] = ()
    ) -> float | str:
        """The epsilon already spent of each unit, except by unfinished trainings that these cells resume.

        Where nobody can tell, the reason in words (`spent_for`).

        Raises:
            StudyError: the book is damaged.
        """
        others = [
            line for line in self.everywhere() if has_failed(line) or not (line["cell"] in cells and is_begun(line))
        ]
        return spent_for(protected, [line["ledger"] for line in others if about(line, dataset, records)], delta)

    def smallest_delta(self, dataset: str, delta: float, records: str) -> float:
        """The delta at which a budget is added up: the smallest of all trainings on these records, and of this.

        Raises:
            StudyError: the book is damaged.
        """
        lines = (line for line in self.everywhere() if about(line, dataset, records))
        return min([delta, *(line["ledger"]["delta"] for line in lines)])

    def lost(self, dataset: str, records: str) -> str:
        """A sentence on the lines that count although nobody can tell whether they are about these records, or ""."""
        return lost_in_words(self.everywhere(), dataset, records)

    def missing(self) -> list[dict]:
        """The lines beside the data that this log lacks: of other folders, or kept out of it by a death."""
        here = {identity(entry) for entry in self.entries()}
        lines = [line for line in self.everywhere() if identity(line) not in here]
        return [{key: value for key, value in line.items() if key != "lost"} for line in lines]

    def numbered(self, dataset: str, records: str) -> bool:
        """Whether records are named by row numbers, as earlier trainings in the log require.

        Those knew them before names were made of what records hold (data/own_names.py): under other names, models that
        are paid for would be of other data.

        Args:
            records: as of `record`; the folder that is read first, and its reader, must be the same.
        """
        return any(
            first_name(entry["records"]) == first_name(records)
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
        *,
        files: Mapping[str, str] | None = None,
        config: str = "",
        training: str | None = None,
        known: int | None = None,
        failed: str = "",
        folders: Sequence[str] = (),
    ) -> None:
        """Add a line per seed; concurrent jobs wait for each other.

        Lines of this very training that stand beside the data, since a death kept them out of this log, are copied.
        A total.json beside the book does not know of them, and somebody might publish by it: it goes, and the next run
        of the study makes it anew.

        Args:
            records: which records these are, whatever the data set is called (config/locations.py).
            files: name -> SHA-256 of what was made (privacy/paid_store.py).
            config: the fingerprint of what was trained.
            training: its name, where it keeps checkpoints; without `files`, it was begun.
            known: how many of its lines (`ended`) there were before it; None: however many.
            failed: why nothing will come of it; what it spent is added to whatever budget.
            folders: that are read, with those behind links, so that the data may be moved with the log beside them.

        Raises:
            StudyError: as of `afford`, or the disk is full; then nothing is added.
            OvertakenError: there are more such lines than were known; then nothing is added.
        """
        seeds = [seeds] if isinstance(seeds, int) else seeds
        when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        entry = {"when": when, "dataset": dataset, "records": records, "folders": list(folders), "cell": cell}
        facts = {"ledger": dict(ledger), "files": files and dict(files), "config": config, "training": training}
        facts |= {"failed": failed}
        facts = {key: value for key, value in facts.items() if value}
        with self._locked():
            if known is not None and self.ended(cell, seeds) > known:
                raise OvertakenError
            told = {line["seed"]: line for line in self.missing() if _is_of(line, cell, files, training, failed)}
            if not failed and (untold := [seed for seed in seeds if seed not in told]):
                self.afford(dataset, cell, untold, ledger, records, training)
            if not self.numbered(dataset, records):
                entry["ids"] = CONTENT
            self.path.with_name("total.json").unlink(missing_ok=True)
            new = [told.get(seed) or entry | {"seed": seed} | facts | {"id": secrets.token_hex(8)} for seed in seeds]
            earlier = list(self.entries())
            for book in self.shared:
                book.add([*earlier, *new])
            self._append(new)

    def ended_seeds(self) -> set[tuple[str, int]]:
        """(cell, seed) of all finished trainings."""
        return {(entry["cell"], entry["seed"]) for entry in self.entries() if not is_begun(entry)}

    def ended(self, cell: str, seeds: Sequence[int]) -> int:
        """The number of lines of finished trainings of a cell with any of these seeds."""
        lines = (entry for entry in self.entries() if entry["cell"] == cell and entry["seed"] in seeds)
        return sum(not is_begun(entry) for entry in lines)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with clear_disk_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path.with_name(f".{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            with contextlib.ExitStack() as locks:
                for book in self.shared:  # always in the same order, so that no two processes wait for each other
                    locks.enter_context(book.locked())
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                except OSError as error:
                    raise StudyError(
                        f"{self.path}: cannot be locked ({error.strerror}), and two that spend at once could miss each "
                        "other; put the results on a disk with locks (flock)"
                    ) from None
                yield
        finally:
            os.close(lock)


def _goes_on(line: Mapping, training: str) -> bool:
    """Whether a line is of the training of this name, begun and not ended: a copy of its checkpoint may have ended."""
    return line.get("training") == training and is_begun(line) and not has_failed(line)


def _is_of(line: Mapping, cell: str, files: Mapping[str, str] | None, training: str | None, failed: str) -> bool:
    """Whether a line beside the data is of the very training that is written down, as told by what nobody else has."""
    if line["cell"] != cell or line.get("failed", "") != failed:
        return False
    if files:
        return line.get("files") == files
    return training is not None and "files" not in line and line.get("training") == training
