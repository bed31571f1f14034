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
import math
import os
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic, clear_disk_errors
from dpstudy.privacy import gaussian
from dpstudy.privacy.data_book import DataBook, identity
from dpstudy.privacy.printed import upper_bound

BOOK = "results/privacy/spent.jsonl"
_CHANGED = "`make status` says what was changed: undo that."
_GONE = "What was made is there no more (removed, or wiped)."
_SURE, _LEAST = {False: 0.97, True: 0.8}, 0.01  # of an epsilon that is told to fit, where batches are samples or not
CONTENT = "content"  # value of a line's "ids" where records without names are named by their content
_KEYS = {"when": str, "dataset": str, "cell": str, "seed": int, "ledger": dict}  # that every line has
_MORE = {"records": str, "files": dict, "config": str, "training": str, "failed": str, "ids": str, "id": str}
_COUNTED = {"unit": str, "guarantee": str, "delta": float, "events": list}  # of a line's ledger


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

    Further keys are "training", "failed", "ids" and "id".

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
    """

    def __init__(
        self,
        path: str | os.PathLike,
        again: bool = False,
        ceiling: str | None = None,
        shared: Sequence[str | os.PathLike] = (),
    ):
        self.path, self.again, self.ceiling = Path(path), again, ceiling
        self.shared = [DataBook(name, _read) for name in sorted({os.path.abspath(name) for name in shared})]

    def entries(self) -> Iterator[dict]:
        """The lines of the log, from the first.

        Raises:
            StudyError: a line is damaged, or no entry.
        """
        return _read(self.path)

    def trainings(self) -> list[dict]:
        """One line per training: of one that was begun and has ended, the line written at its end."""
        return _of_trainings(list(self.entries()))

    def _paths(self) -> list[str]:
        return [str(self.path), *(str(book.path) for book in self.shared)]

    def everywhere(self) -> list[dict]:
        """One line per training, including those in other folders' logs.

        Raises:
            StudyError: a line of a book is damaged.
        """
        by_identity = {identity(entry): entry for book in self.shared for entry in book.entries()}
        return _of_trainings(list((by_identity | {identity(entry): entry for entry in self.entries()}).values()))

    def tell_others(self) -> None:
        """Copy lines that only this log has into those beside the data, as after an older version.

        Raises:
            StudyError: one of them cannot be written.
        """
        with self._locked():
            entries = list(self.entries())
            for book in self.shared:
                book.add(entries)

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
                    "its folders in results/cells and results/privacy/paid/cells."
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
            ledger: of each of the seeds; its delta is the one at which all of it is added up.
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
            if about(entry, dataset, records) and not (training and entry.get("training") == training)
        ]
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
            before = (_total([(one, 1) for one in past], ledger["delta"]) if past else None) or 0.0
            used_up = before >= float(self.ceiling)
            sampled = any(event["sampling"] != "none" for event in ledger["events"])
            largest = fitting(float(self.ceiling), before, len(seeds), ledger["delta"], sampled)
            less = ", or take a smaller ε" + (f" ({largest:g} fits)" if largest else "")
            limit, less = (f"{budget}, of which nothing is left", "") if used_up else (budget, less)
            raise BeyondBudgetError(
                f"cell {cell}: with it trainings would have spent ε = {upper_bound(spent)} on these records (before it "
                f"{upper_bound(before)}), beyond {limit}; leave the cell out{less}"
            )

    def hopeless(self, dataset: str, cell: str, epsilon: str, delta: float, records: str) -> str:
        """The reason why no training of a cell can keep within the budget, by the log alone; "" where one may.

        Args:
            epsilon: the target, as in the config.

        Raises:
            StudyError: the book is damaged.
        """
        if self.ceiling is None:
            return ""
        budget = f"release: {{budget: {self.ceiling}}}"
        if epsilon == "inf":
            return f"cell {cell}: without noise it has no bound, and so is beyond {budget}; leave the cell out"
        before = self.before(dataset, delta, records, [cell])
        if before is None or before < float(self.ceiling):
            return ""
        spent = f"ε = {upper_bound(before)} is spent on these records, those of other folders included"
        larger = "leave the cell out, or decide on a larger budget (`make plan` says what the study comes to)"
        return f"cell {cell}: nothing is left of {budget} ({spent}); {larger}"

    def before(self, dataset: str, delta: float, records: str, cells: Collection[str] = ()) -> float | None:
        """The epsilon already spent on these records, except by unfinished trainings that these cells resume.

        None where a training had no guarantee.

        Raises:
            StudyError: the book is damaged.
        """
        others = [
            line for line in self.everywhere() if has_failed(line) or not (line["cell"] in cells and is_begun(line))
        ]
        past = [(line["ledger"], 1) for line in others if about(line, dataset, records)]
        return _total(past, delta) if past else 0.0

    def numbered(self, dataset: str, records: str) -> bool:
        """Whether records are named by row numbers, as earlier trainings in the log require.

        Those knew them before names were made of what records hold (data/own_names.py): under other names, models that
        are paid for would be of other data.

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
        *,
        files: Mapping[str, str] | None = None,
        config: str = "",
        training: str | None = None,
        known: int | None = None,
        failed: str = "",
    ) -> None:
        """Add a line per seed; concurrent jobs wait for each other.

        A total.json beside the book does not know of them, and somebody might publish by it: it goes, and the next run
        of the study makes it anew.

        Args:
            records: which records these are, whatever the data set is called (config/locations.py).
            files: name -> SHA-256 of what was made (privacy/paid_store.py).
            config: the fingerprint of what was trained.
            training: its name, where it keeps checkpoints; without `files`, it was begun.
            known: how many of its lines (`ended`) there were before it; None: however many.
            failed: why nothing will come of it; what it spent is added to whatever budget.

        Raises:
            StudyError: as of `afford`, or the disk is full; then nothing is added.
            OvertakenError: there are more such lines than were known; then nothing is added.
        """
        seeds = [seeds] if isinstance(seeds, int) else seeds
        when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        entry = {"when": when, "dataset": dataset, "records": records, "cell": cell}
        facts = {"ledger": dict(ledger), "files": files and dict(files), "config": config, "training": training}
        facts |= {"failed": failed}
        facts = {key: value for key, value in facts.items() if value}
        with self._locked():
            if known is not None and self.ended(cell, seeds) > known:
                raise OvertakenError
            if not failed:
                self.afford(dataset, cell, seeds, ledger, records, training)
            if not self.numbered(dataset, records):
                entry["ids"] = CONTENT
            self.path.with_name("total.json").unlink(missing_ok=True)
            before = self.path.read_bytes() if self.path.exists() else b""
            if before and not before.endswith(b"\n"):
                before += b"\n"  # an edit by hand may have left out the final newline
            new = [entry | {"seed": seed} | facts | {"id": secrets.token_hex(8)} for seed in seeds]
            earlier = list(self.entries())
            for book in self.shared:
                book.add([*earlier, *new])
            lines = "".join(json.dumps(line) + "\n" for line in new)
            with atomic(self.path, private=True, durable=True) as temporary:
                temporary.write_bytes(before + lines.encode())

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
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        finally:
            os.close(lock)


def _read(path: Path) -> Iterator[dict]:
    if not path.exists():
        return
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            yield _entry(line)
        except (ValueError, RecursionError) as error:  # ValueError: not UTF-8, not JSON, a giant number
            why = str(error) if isinstance(error, _NoEntryError) else "it is not JSON"
            raise StudyError(
                f"{path}: line {number} is damaged ({why}); nobody can tell what was spent. Mend it by hand"
            ) from None


def _of_trainings(entries: Sequence[dict]) -> list[dict]:
    over = {_training(entry) for entry in entries if has_failed(entry) or not is_begun(entry)}
    return [entry for entry in entries if has_failed(entry) or not (is_begun(entry) and _training(entry) in over)]


class _NoEntryError(ValueError):
    """A line that is JSON, and no entry of the book."""


def _entry(line: bytes) -> dict:
    entry = json.loads(line)
    _check_types(entry, _KEYS, _MORE, "the line")
    _check_types(entry["ledger"], _COUNTED, {}, "its ledger")
    return entry


def _check_types(content: object, needed: Mapping[str, type], more: Mapping[str, type], what: str) -> None:
    if not isinstance(content, dict):
        raise _NoEntryError(f"{what} is no entry")
    if missing := [key for key in needed if key not in content]:
        raise _NoEntryError(f"{what} lacks {missing[0]!r}")
    for key, kind in {**needed, **more}.items():
        kinds = (int, float) if kind is float else kind
        if key in content and (not isinstance(content[key], kinds) or isinstance(content[key], bool)):
            raise _NoEntryError(f"{key!r} of {what} is not of the type {kind.__name__!r}")


def is_begun(entry: Mapping) -> bool:
    """Whether a line was written at a training's first checkpoint, or when it failed, rather than at its end."""
    return "training" in entry and "files" not in entry


def has_failed(entry: Mapping) -> bool:
    """Whether a line is of a training that failed after noise was drawn."""
    return "failed" in entry


def _training(entry: Mapping) -> tuple:
    return entry["cell"], entry["seed"], entry.get("training")


def about(entry: Mapping, dataset: str, records: str | None) -> bool:
    """Whether a line may concern some of these records (locations.records_of).

    It does if the same folder was read, or one around the other. Old lines know no folders around, or the data set's
    name alone.
    """
    if not (entry.get("records") and records):
        return entry["dataset"] == dataset
    (read, around), (other, around_other) = map(_names, (entry["records"], records))
    return not (read.isdisjoint(other | around_other) and around.isdisjoint(other))


def _names(records: str) -> tuple[set[str], set[str]]:
    """Names of the folders that are read, and of those around them."""
    read, _, around = records.partition("<")
    return set(read.split("+")), set(around.split("+")) - {""}


def _first(records: str) -> str:
    """The first of the names: of the folder that is read first, and its reader."""
    return records.partition("<")[0].partition("+")[0]


def fitting(ceiling: float, before: float, models: int, delta: float, sampled: bool) -> float:
    """The epsilon that each of `models` models may have within the budget, if all were Gaussian; 0 if too small.

    Args:
        sampled: their batches are samples, whose epsilons add up otherwise: of fifteen sums, two to nine models of
            epsilon 1 to 8, accountants gave 0.86 to 1.20 times what is reckoned.
    """
    left = gaussian.mu_of(ceiling, delta) ** 2 - gaussian.mu_of(before, delta) ** 2
    if left <= 0:
        return 0.0
    epsilon = _SURE[sampled] * gaussian.epsilon_of(math.sqrt(left / models), delta)
    digits = 1 - math.floor(math.log10(epsilon)) if epsilon > 0 else 0
    largest = math.floor(epsilon * 10**digits) / 10**digits
    return largest if largest >= _LEAST else 0.0


def _total(ledgers: Sequence[tuple[Mapping, int]], delta: float) -> float | None:
    """The epsilon of all of them together; None where one has no proved guarantee."""
    from dpstudy.privacy.ledger_sums import total

    return total([(dict(ledger), seeds) for ledger, seeds in ledgers], delta, same_parts=False)["epsilon"]
