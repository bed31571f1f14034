"""Training with secure noise: stored before it is published, and reused where it was paid for before.

First its files, or its first checkpoint, are in the store, whole; then the book has them; then they are used. Whoever
comes after a death in between finds them in the store, and writes them down.
"""

import contextlib
import functools
import json
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dpstudy.cell.inputs import CellInputs, CellRequest, units
from dpstudy.cell.paid_models import Begun, PaidModels, is_of, store_of
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_tensors
from dpstudy.privacy.paid_store import hashes_of, name_of, publish
from dpstudy.privacy.spending import ANOTHER, BeyondBudgetError, OvertakenError, Spending
from dpstudy.privacy.spent_lines import has_failed, is_begun, of_trainings

if TYPE_CHECKING:
    from dpstudy.methods.keeper import Keeper
    from dpstudy.privacy.noise import NoiseSource

OTHER_DATA = (
    "cell {}: it was trained with secure noise, and what it learned from or was tested on ({}) is not what is there "
    "now, or nobody can tell; training it again spends as much again. Undo what was changed, and it is taken as it is "
    "from {}. "
)
DAMAGED = (
    "cell {}: its training of seed {} was begun with secure noise, and its checkpoint, {}, is damaged; to begin again "
    "spends as much again. Restore the checkpoint from a copy, and it goes on. "
)
_LONGEST = 300  # characters of why a training failed
_SKEW_SECONDS = 2  # how far clocks of a cluster's machines may differ
_log = logging.getLogger("dpstudy")


def take_or_train(
    request: CellRequest, inputs: CellInputs, outputs: Mapping[str, str], train: Callable[[], None]
) -> None:
    """Publish the stored training of this config and these records without drawing noise, or else train.

    Args:
        train: calls `train_cell`, here or in processes of its own.

    Raises:
        StudyError: it learned from other records, a file of the store is not as it was written, or as of `train_cell`.
    """
    book, cell = request.spending, request.cell.path
    if book is None:
        return train()
    with store_of(book).claim(cell, request.seeds):
        write_down(request)
        if not take(request, inputs, outputs):
            _check_clock(inputs)
            train()


def write_down(request: CellRequest) -> None:
    """Enter into the budget log the stored trainings that a crash kept out of it.

    Raises:
        StudyError: it is beyond the budget, and leaves nothing.
    """
    book, cell = request.spending, request.cell
    assert book is not None
    paid, last = PaidModels(book), PaidModels.begun_at(checkpoint_of(request))
    for folder in paid.unbooked(cell.path, request.seeds):
        paid.store.check(folder)
        made, ledger = read_json(folder / "run.json")["made_by"], read_json(folder / "ledger.json")
        files = hashes_of(folder)
        goes_on = last and last.made_by["config"] in (made["config"], made.get("begun_as"))
        training = last.training if last and goes_on else None
        record = functools.partial(book.record, files=files, config=made["config"], training=training)
        try:
            record(cell.dataset, cell.path, request.seeds, ledger, request.records, folders=request.folders)
        except BeyondBudgetError:
            paid.store.remove(cell.path, request.seeds, files)
            raise
        _log.info("cell %s: trained before, by a process that ended before it was written down: %s", cell.path, folder)


def take(request: CellRequest, inputs: CellInputs, outputs: Mapping[str, str]) -> bool:
    """Publish the stored training of this config and these records; no noise is drawn and nothing is logged.

    What changes memory and speed alone is no part of the config here.

    Returns:
        False: it is to be trained, or the training will refuse it.

    Raises:
        StudyError: it learned from other records, or a file of the store is not as it was written.
    """
    book, cell = request.spending, request.cell.path
    if book is None:
        return False
    paid = PaidModels(book)
    folder = paid.find(cell, request.seeds)
    if folder is None:
        return False
    paid.store.check(folder)
    made = read_json(folder / "run.json")["made_by"]
    whole = all((folder / os.path.basename(path)).exists() for path in outputs.values())
    if not is_of(made, request.fingerprint, request.deciding) or not whole:
        return False
    if others := _other_data(made["data"], inputs, paid):
        if book.again:
            return False
        what = ", ".join(others) + _other_count(folder, request, inputs)
        raise StudyError(OTHER_DATA.format(cell, what, folder) + ANOTHER)
    publish(folder, outputs)
    remove_checkpoint(request)
    _log.info("cell %s: paid for already, and taken as it is from %s (library %s)", cell, folder, made["library"])
    return True


def _other_data(then: Mapping[str, str], inputs: CellInputs, paid: PaidModels) -> list[str]:
    """What of a training's data is not the same now, by name."""
    now, files = inputs.hashes(), inputs.vouchers()
    changed = [name for name in now if name in then and then[name] != now[name]]
    for name in changed:
        if name in files:
            paid.store.note_content(files[name])
    same = {name for name in changed if name in files and paid.store.same(then[name], now[name])}
    return sorted(then.keys() ^ now.keys() | (set(changed) - same))


def _other_count(folder: Path, request: CellRequest, inputs: CellInputs) -> str:
    """How many subjects there were, where there are others: one name in two spellings was two in numbered folders."""
    then, now = read_json(folder / "ledger.json")["n"], units(inputs.manifests(), request.dataset["unit"])
    spelled = ", spellings of one name as one" if request.dataset["unit"] == "subject" else ""
    return f"; its ledger counts {then}, and there are {now} now{spelled}" if then != now else ""


def _check_clock(inputs: CellInputs) -> None:
    """Refuse to train while the clock is behind the inputs': Snakemake would throw the outputs away.

    Raises:
        StudyError: names the file.
    """
    now = time.time() + _SKEW_SECONDS
    for path in inputs.vouchers().values():
        if (made := os.stat(path).st_mtime) > now:
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(made))
            raise StudyError(
                f"{path}: was made at {when}, which the clock of this machine has not reached; nothing was trained. "
                "Set the clock, and run the same command again"
            )


def checkpoint_of(request: CellRequest) -> Path:
    """The path of a training's checkpoint: in the store where noise is secure."""
    if book := request.spending:
        return store_of(book).checkpoint(request.cell.path, request.seeds)
    return Path(request.checkpoint or os.devnull)


def remove_checkpoint(request: CellRequest) -> None:
    """Remove the checkpoint, if one is kept."""
    if request.checkpoint:
        checkpoint_of(request).unlink(missing_ok=True)


@contextlib.contextmanager
def unbooked_forgotten(request: CellRequest) -> Iterator[None]:
    """On a training beyond the budget, remove its checkpoint unless logged: a checkpoint is a noisy model too."""
    try:
        yield
    except BeyondBudgetError:
        last, book = PaidModels.begun_at(checkpoint_of(request)), request.spending
        if book and not (last and _entry_of(book, last.training)):
            remove_checkpoint(request)
        raise


def resumed(request: CellRequest, inputs: CellInputs) -> Begun | None:
    """The partly paid training that this one resumes; None where it starts anew.

    It has the same config, but for what changes memory and speed alone, and learned from the same records, whichever
    version of the program began it.

    Raises:
        StudyError: it learned from other records, or its checkpoint is damaged.
    """
    book, path = request.spending, checkpoint_of(request)
    last = PaidModels.begun_at(path)
    if book and last and any(has_failed(entry) for entry in book.entries() if entry.get("training") == last.training):
        remove_checkpoint(request)  # as the process would have, had it not died over it
        return None
    same = last is not None and is_of(last.made_by, request.fingerprint, request.deciding)
    if book and path.exists() and (same or last is None):
        _check_whole(request, book, path, last)
    if book is None or last is None or not same:
        return None
    if last.made_by["library"] != request.library and _entry_of(book, last.training) is None:
        return None  # its plan is unknown, and its model was never released
    if others := _other_data(last.made_by["data"], inputs, PaidModels(book)):
        if book.again:
            return None
        raise StudyError(OTHER_DATA.format(request.cell.path, ", ".join(others), path) + ANOTHER)
    return last


def _check_whole(request: CellRequest, book: Spending, path: Path, last: Begun | None) -> None:
    """Refuse to begin a training anew, and to pay for it twice, because the checkpoint of the one paid for is damaged.

    Raises:
        StudyError: it is, and nobody said that as much may be spent again.
    """
    if book.again:
        return
    cell, seeds = request.cell.path, request.seeds
    if last:  # a death may have kept its line out of this log
        lines = [line for line in (*book.entries(), *book.missing()) if line.get("training") == last.training]
    else:
        lines = [line for line in book.trainings() if line["cell"] == cell and line["seed"] in seeds]
    begun = [line for line in of_trainings(lines) if is_begun(line) and not has_failed(line)]
    if not begun:
        return
    try:
        read_tensors(path)
    except StudyError:
        raise StudyError(DAMAGED.format(cell, begun[0]["seed"], path) + ANOTHER) from None


def _entry_of(book: Spending, training: str) -> dict | None:
    """The line with which a training was begun."""
    return next((entry for entry in book.entries() if entry.get("training") == training), None)


@contextlib.contextmanager
def failure_paid(
    request: CellRequest, ledger: Mapping, sources: Mapping[int, "NoiseSource"], keeper: "Keeper | None" = None
) -> Iterator[None]:
    """A context that logs a training that ends with an error after noise was drawn, and keeps no checkpoint of it.

    Whether it fails depends on the noise and the records: drawn anew until it does not, as a cluster does by itself,
    the model would be a choice that nobody paid for. What a machine lacks (disk, memory) tells nothing, no more than a
    kill does; of several processes it is a RuntimeError that one of them was killed.

    Args:
        sources: of each seed that was begun; more may come.
        keeper: of its checkpoints, where it has any.
    """
    try:
        yield
    except Exception as error:
        book, cell, seeds = request.spending, request.cell, [seed for seed, source in sources.items() if source.drew]
        tells = isinstance(error, StudyError) or request.options.get("devices", 1) == 1
        if isinstance(error, BeyondBudgetError) or _of_the_machine(error):  # the former: another process was first
            tells = False
        if tells and book and ledger["events"] and seeds:
            training = keeper.training if keeper else secrets.token_hex(8)
            why = (str(error).splitlines() or [""])[0][:_LONGEST] or type(error).__name__
            record = functools.partial(book.record, config=request.fingerprint, training=training, failed=why)
            record(cell.dataset, cell.path, seeds, ledger, request.records, folders=request.folders)
            remove_checkpoint(request)
        raise


def _of_the_machine(error: BaseException | None) -> bool:
    """Whether an error is one of the operating system or of too little memory, or came of one."""
    while error:
        if isinstance(error, OSError | MemoryError) or type(error).__name__ == "OutOfMemoryError":  # torch's
            return True
        error = error.__cause__ or error.__context__
    return False


def pay(
    request: CellRequest,
    ledger: Mapping,
    outputs: Mapping[str, str],
    save: Callable[[Mapping[str, str]], None],
    known: int,
    training: str | None = None,
) -> None:
    """Store a finished training, log what it spent, and only then publish it.

    Args:
        save: writes the files to paths, by the keys of `outputs`.
        known: how many trainings the book had of it when it began.
        training: its name, where it has a checkpoint.

    Raises:
        StudyError: it is beyond the budget, and leaves nothing; or the disk is full.
    """
    book, cell, seeds = request.spending, request.cell, request.seeds
    assert book is not None
    store = store_of(book)

    def save_in(folder: Path) -> None:
        save({key: str(folder / os.path.basename(path)) for key, path in outputs.items()})

    files = store.add(cell.path, seeds, save_in)
    record = functools.partial(book.record, files=files, config=request.fingerprint, training=training, known=known)
    try:
        record(cell.dataset, cell.path, seeds, ledger, request.records, folders=request.folders)
    except BeyondBudgetError:
        store.remove(cell.path, seeds, files)
        raise
    except OvertakenError:  # this model was never released
        store.remove(cell.path, seeds, files)
        folder = PaidModels(book).find(cell.path, seeds)
        made = read_json(folder / "run.json")["made_by"] if folder else None
        if folder is None or made is None or not is_of(made, request.fingerprint, request.deciding):
            book.check(cell.path, seeds)
            raise
        _log.info("cell %s: another process has trained it meanwhile; its model is taken", cell.path)
        publish(folder, outputs)
    else:
        publish(store.place(cell.path, seeds) / name_of(files), outputs)


def begin(request: CellRequest, ledger: Mapping, training: str) -> None:
    """Log a training that has a checkpoint, unless the budget log has it already.

    Raises:
        StudyError: it is beyond the budget, and leaves no checkpoint; or the disk is full.
    """
    book, cell = request.spending, request.cell
    assert book is not None
    if entry := _entry_of(book, training):
        if entry["ledger"]["events"] != json.loads(json.dumps(ledger["events"])):
            raise StudyError(
                f"cell {cell.path}: its training was begun by another version of the program, which planned other "
                "noise, and its steps so far are not what this one would count; let that version finish it, or write "
                "release: {spend_again: true} and remove its checkpoint, "
                f"{checkpoint_of(request)} (docs/own-data-reference.md)"
            )
        return
    record = functools.partial(book.record, config=request.fingerprint, training=training)
    try:
        record(cell.dataset, cell.path, request.seeds, ledger, request.records, folders=request.folders)
    except BeyondBudgetError:
        remove_checkpoint(request)
        raise
