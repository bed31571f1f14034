"""A training that secure noise pays for: kept before it is published, and taken again where it was paid for before."""

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from dpstudy.errors import StudyError
from dpstudy.files import read_json
from dpstudy.privacy.paid_store import PaidStore, name_of, publish
from dpstudy.study.inputs import CellInputs, CellRequest
from dpstudy.study.paid_models import PaidModels, store_of

OTHER_DATA = (
    "cell {}: it was trained with secure noise, and what it learned from or was tested on ({}) is not what is there "
    "now, or nobody can tell; training it again spends as much again. Undo what was changed, and it is taken as it is "
    "from {}; else write release: {{spend_again: true}} (docs/own-data.md)"
)
_log = logging.getLogger("dpstudy")


def take(request: CellRequest, inputs: CellInputs, outputs: Mapping[str, str]) -> bool:
    """Publish a training that was paid for before, where today's config and records are its own; nothing is drawn, and
    nothing written down.

    Returns:
        False: it is to be trained, or the training will refuse it.

    Raises:
        StudyError: it learned from other records, or a file of the store is not as it was written.
    """
    book, cell = request.spending, request.cell.path
    if book is None or book.again:
        return False
    paid = PaidModels(book)
    folder = paid.find(cell, request.seeds)
    if folder is None:
        return False
    paid.store.check(folder)
    made = read_json(folder / "run.json")["made_by"]
    if made["config"] != request.fingerprint or any(
        not (folder / os.path.basename(path)).exists() for path in outputs.values()
    ):
        return False
    if others := _other_data(made["data"], inputs, paid.store):
        raise StudyError(OTHER_DATA.format(cell, ", ".join(others), folder))
    publish(folder, outputs)
    if request.checkpoint:
        Path(request.checkpoint).unlink(missing_ok=True)
    _log.info("cell %s: paid for already, and taken as it is from %s (library %s)", cell, folder, made["library"])
    return True


def _other_data(then: Mapping[str, str], inputs: CellInputs, store: PaidStore) -> list[str]:
    """What of a training's data is not the same now, by name."""
    now, files = inputs.hashes(), inputs.vouchers()
    changed = [name for name in now if name in then and then[name] != now[name]]
    for name in changed:
        if name in files:
            store.note_content(files[name])
    same = {name for name in changed if name in files and store.same(then[name], now[name])}
    return sorted(then.keys() ^ now.keys() | (set(changed) - same))


def pay(
    request: CellRequest, ledger: Mapping, outputs: Mapping[str, str], save: Callable[[Mapping[str, str]], None]
) -> None:
    """Keep what a training made, write down what it spent, and only then publish it.

    Args:
        save: writes the files to paths, by the keys of `outputs`.

    Raises:
        StudyError: it is beyond the budget, and leaves nothing; or the disk is full.
    """
    book, cell, seeds = request.spending, request.cell, request.seeds
    assert book is not None
    store = store_of(book)
    files = store.add(
        cell.path,
        seeds,
        lambda folder: save({key: str(folder / os.path.basename(path)) for key, path in outputs.items()}),
    )
    try:
        book.record(cell.dataset, cell.path, seeds, ledger, request.records, files)
    except StudyError:
        store.remove(cell.path, seeds, files)
        raise
    publish(store.place(cell.path, seeds) / name_of(files), outputs)
