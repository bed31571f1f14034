"""Models trained with secure noise: kept, never silently overwritten, and never paid for twice.

What a run is about to train is looked at before its first job: Snakemake removes what a job shall make before the job
itself could object, and a model that is gone was paid for in vain.
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dpstudy.cell.bound import releases_of
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_tensor_metadata, sha256
from dpstudy.privacy.paid_store import PaidStore, name_of
from dpstudy.privacy.spending import ANOTHER, Spending
from dpstudy.privacy.spent_lines import is_begun

OVERWRITTEN = (
    "cell {}: its model was trained with secure noise, and this run would train another in its place; what it spent "
    "would be lost. Undo what was changed, or copy it elsewhere. "
)


class PaidForError(StudyError):
    """A run would train only models that are paid for already, or would destroy one."""


@dataclass(frozen=True)
class Begun:
    """An unfinished training: its name, and `made_by` and seed of the run that began it."""

    training: str
    made_by: dict


@dataclass(frozen=True)
class Due:
    """A training that a run is about to start.

    Attributes:
        cell: its path among cells.
        seeds: that it trains.
        ledger: the file that it would write.
        outputs: all files that it would write, by key.
        fingerprint: the config hash of what it would train.
        deciding: the same without what changes memory and speed alone.
    """

    cell: str
    seeds: Sequence[int]
    ledger: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    deciding: str = ""


def store_of(book: Spending) -> PaidStore:
    """The store of paid models that lies beside a budget log."""
    return PaidStore(book.path.with_name("paid"))


def is_of(made_by: Mapping, fingerprint: str, deciding: str) -> bool:
    """Whether a training has the config with these hashes, in full or without what changes memory and speed alone.

    Earlier versions wrote the former only.

    Args:
        made_by: of its run.json or its checkpoint.
    """
    return made_by["config"] == fingerprint or made_by.get("deciding") == deciding


class PaidModels:
    """The trainings that the budget log and the store beside it know; read once.

    Among them are those whose files are in the store, and whose line is in the log beside the data alone (`unwritten`),
    since a death kept it out of this one, or this one was lost (`Spending.restore` puts it there).

    Raises:
        StudyError: the book is damaged.
    """

    def __init__(self, book: Spending):
        self.book, self.store = book, store_of(book)
        entries = book.trainings()
        self.unwritten = list(filter(self.store.has, book.missing()))
        ended = [entry for entry in (*entries, *self.unwritten) if not is_begun(entry)]
        self._last = {(entry["cell"], entry["seed"]): entry for entry in ended}
        self._begun = {(entry["cell"], entry["seed"]) for entry in entries if is_begun(entry)}
        self._named = {name_of(entry["files"]) for entry in entries if "files" in entry}

    def cells(self) -> set[str]:
        """The cells in the budget log."""
        return {cell for cell, _ in self._last}

    def knows(self, cell: str, seeds: Sequence[int]) -> bool:
        """Whether a training of the cell with any of the seeds was begun or has ended."""
        return any((cell, seed) in self._last or (cell, seed) in self._begun for seed in seeds)

    def lines(self, cell: str, seeds: Sequence[int]) -> list[dict]:
        """The last line of the budget log for each of these seeds that has one."""
        return [self._last[cell, seed] for seed in seeds if (cell, seed) in self._last]

    def find(self, cell: str, seeds: Sequence[int]) -> Path | None:
        """The stored folder of the latest training of these seeds in the budget log; None where the store lacks it.

        Of lines that name no files, that of an earlier version, it is the folder that no line names.
        """
        lines = self.lines(cell, seeds)
        if not lines or len(lines) < len(seeds) or any(line.get("files") != lines[0].get("files") for line in lines):
            return None
        place = self.store.place(cell, seeds)
        if files := lines[0].get("files"):
            folders = [place / name_of(files)]
        else:
            folders = [path for path in self.store.trainings(cell, seeds) if path.name not in self._named]
        return folders[0] if len(folders) == 1 and folders[0].is_dir() else None

    def unbooked(self, cell: str, seeds: Sequence[int]) -> list[Path]:
        """The folders of finished trainings that a crash kept out of the budget log."""
        old = [releases_of(line["ledger"]) for line in self.lines(cell, seeds) if "files" not in line]
        folders = [path for path in self.store.trainings(cell, seeds) if path.name not in self._named]
        return [path for path in folders if releases_of(read_json(path / "ledger.json")) not in old]

    @staticmethod
    def begun_at(checkpoint: Path) -> Begun | None:
        """The training that a checkpoint belongs to; None where it is missing or damaged."""
        try:
            metadata = read_tensor_metadata(checkpoint)
            return Begun(metadata["training"], json.loads(metadata["made_by"]))
        except (StudyError, KeyError, ValueError):
            return None

    def goes_on(self, due: Due) -> str | None:
        """The name of the training that this one resumes from a checkpoint; None where it starts anew."""
        begun = self.begun_at(self.store.checkpoint(due.cell, due.seeds))
        return begun.training if begun and is_of(begun.made_by, due.fingerprint, due.deciding) else None

    def has(self, due: Due) -> bool:
        """Whether the training that is due is in the store, or can be put there."""
        folder = self.find(due.cell, due.seeds)
        if folder is None and not self._is_booked(due):
            return False
        made = read_json(folder / "run.json" if folder else due.outputs["run"])["made_by"]
        return is_of(made, due.fingerprint, due.deciding)

    def keep(self, due: Due, add: bool = True) -> Path | None:
        """The stored folder of a training, or None where there is none.

        Outputs that an earlier version left outside the store are copied into it where the budget log has them (or only
        named, without `add`).

        Raises:
            StudyError: a file of the store is not as it was written, and not among the outputs either.
        """
        folder = self.find(due.cell, due.seeds)
        try:
            if folder:
                self.store.check(folder)
                return folder
        except StudyError:
            if not self._is_booked(due):
                raise
        if self._is_booked(due):
            if not add:
                return Path(due.outputs["run"]).parent
            self.store.add(due.cell, due.seeds, lambda folder: _copy(due.outputs, folder))
        return self.find(due.cell, due.seeds)

    def _is_booked(self, due: Due) -> bool:
        """Whether the outputs are there, and are of the training that the book has last for these seeds."""
        lines, paths = self.lines(due.cell, due.seeds), due.outputs.values()
        if not paths or len(lines) < len(due.seeds) or not all(map(os.path.exists, paths)):
            return False
        try:
            run, ledger = read_json(due.outputs["run"]), read_json(due.outputs["ledger"])
            files = {os.path.basename(path): sha256(path) for path in paths}
        except StudyError:
            return False
        return [row["seed"] for row in run["seeds"]] == list(due.seeds) and all(
            releases_of(line["ledger"]) == releases_of(ledger) and line.get("files", files) == files for line in lines
        )

    def vouches(self, metrics: Mapping, key: str, told: str | None, present: str) -> bool:
        """Whether a cell may be reported although another version of the library or of the data files made it.

        It may if its models were paid for and the data are the same records. `told` is what made the cell, `present`
        what would today, and `key` is as of `summary.check_made_by`.

        Raises:
            StudyError: a file of the store is not as it was written.
        """
        if key != "library" and not (key.startswith("data (") and told and self.store.same(told, present)):
            return False
        made, seeds = _without_config(metrics["made_by"]), [row["seed"] for row in metrics["seeds"]]
        cell = "{dataset}/{features}/{entry}/eps={epsilon}".format(**metrics)
        if (together := self.find(cell, seeds)) is not None:
            return self._made(together) == made
        folders = [self.find(cell, [seed]) for seed in seeds]
        made_each = [self._made(folder) for folder in folders if folder is not None]
        return len(made_each) == len(folders) and made_each[0] == made

    def _made(self, folder: Path) -> dict:
        self.store.check(folder)
        return _without_config(read_json(folder / "run.json")["made_by"])


def _without_config(made_by: Mapping) -> dict:
    """What made a model, but for what a cell has beyond its seeds."""
    return {key: value for key, value in made_by.items() if key not in ("config", "deciding", "evaluation", "others")}


def _copy(outputs: Mapping[str, str], folder: Path) -> None:
    for path in outputs.values():
        shutil.copyfile(path, folder / os.path.basename(path))


def guard(due: Iterable[Due], book: Spending, secure: bool, others: bool = False, keep: bool = True) -> bool:
    """Store the paid models that a run is about to remove, and refuse the run if one would be lost.

    Args:
        due: all trainings of the run.
        book: what was spent; where it allows to spend again, what is of other settings or records is lost.
        secure: the run draws secure noise.
        others: cells that are not trained are scored in this run.
        keep: without it nothing is written, as where a run is only planned.

    Returns:
        whether a job of the run may refuse to train a cell; the others are then to go on.

    Raises:
        PaidForError: names the cell, and how many more there are.
    """
    trainings, paid, booked = list(due), PaidModels(book), False
    refusals, lossless = [], True
    for training in trainings:
        booked = booked or (secure and paid.knows(training.cell, training.seeds))
        sentence, kept = _refusal(training, paid, secure, keep)
        if sentence:
            refusals.append(sentence)
            lossless = lossless and kept
    if book.again:
        return False
    if refusals and not (lossless and (others or len(refusals) < len(trainings))):
        more = f" ({len(refusals) - 1} more cells likewise)" if len(refusals) > 1 else ""
        raise PaidForError(f"nothing was run: {refusals[0]}{more}")
    return booked


def _refusal(training: Due, paid: PaidModels, secure: bool, keep: bool) -> tuple[str | None, bool]:
    """Why it must not be trained (None: it may, or is taken from the store), and whether its job can say so itself
    without a loss."""
    if secure and paid.knows(training.cell, training.seeds):
        folder = None
        try:
            folder = paid.keep(training, keep)
            made = read_json(folder / "run.json")["made_by"] if folder else None
            if made and is_of(made, training.fingerprint, training.deciding):
                return None, True
            paid.book.check(training.cell, training.seeds, paid.goes_on(training))
        except StudyError as error:
            existing = map(os.path.exists, (training.ledger, *training.outputs.values()))
            return str(error), folder is not None or not any(existing)
    path = Path(training.ledger)
    if path.exists() and (ledger := read_json(path)).get("noise") == "secure" and ledger.get("events"):
        return OVERWRITTEN.format(training.cell) + ANOTHER, False
    return None, True
