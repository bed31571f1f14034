"""The hyper-parameter search of one cell, which resumes after a kill."""

import logging
import time
from collections.abc import Mapping
from pathlib import Path

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.config.space import Value, grid
from dpstudy.core.errors import StudyError
from dpstudy.core.job import notice
from dpstudy.core.progress import progress
from dpstudy.provenance.hashes import config_hash
from dpstudy.tuning.failures import TrialError
from dpstudy.tuning.history import History
from dpstudy.tuning.objective import Objective
from dpstudy.tuning.trials import Trial, best_trial, write_trials

_log = logging.getLogger("dpstudy")


def tune(request: CellRequest, inputs: CellInputs, path: str) -> None:
    """Try settings, each suggested from those before, and write the table of trials to `path`.

    The test split is not among the inputs. A journal beside `path` holds what is finished until all is, and beside it
    lies the checkpoint of a trial that takes long.

    Args:
        request: the cell; its options hold `tuning`.
        inputs: `train` is the train split alone, `held_out` the validation split.
        path: of the table of trials.

    Raises:
        StudyError: every trial failed; or as for `Objective`, or because the library was edited meanwhile.
    """
    request.check_library()
    options = request.options["tuning"]
    journal = Path(path).with_name(f"journal-{_fingerprint(request, inputs)}.log")
    checkpoint = journal.with_suffix(".safetensors")
    for other in journal.parent.glob("journal-*"):
        if other not in (journal, checkpoint):  # of another config, library or data
            other.unlink()
    history = History(journal, options["space"], options["seed"], options["sampler"])
    objective = Objective(request, inputs, checkpoint)
    count = len(grid(options["space"])) if options["sampler"] == "grid" else options["trials"]
    left = range(len(history.trials), count)
    for number in progress(left, f"tuning {request.cell.path}"):
        trial = _try(objective, number, history.suggest())
        _log.info("trial %s: %s", number, trial)
        history.add(trial)
        checkpoint.unlink(missing_ok=True)
    failures = [trial.failure for trial in history.trials if trial.failure]
    if len(failures) == len(history.trials):
        raise StudyError(f"cell {request.cell.path}: each of {len(failures)} trials failed; the first: {failures[0]}")
    write_trials(path, history.trials, options["space"])
    for name in (choice := best_trial(path, options["space"])).at_end:
        notice(
            f"{request.cell.path}: the best {name}, {choice.hyperparameters[name]:g}, is at an end of its space; a "
            f"wider methods.{request.cell.entry}.tuning.space.{name} may have a better one"
        )
    journal.unlink()


def _try(objective: Objective, number: int, suggestion: Mapping[str, Value]) -> Trial:
    started = time.monotonic()
    value, failure = 0.0, None
    try:
        value = objective(number, suggestion)
    except TrialError as error:
        failure = str(error)
    return Trial(dict(suggestion), value, round(time.monotonic() - started, 3), failure)


def _fingerprint(request: CellRequest, inputs: CellInputs) -> str:
    """A hash of all that the trials depend on."""
    asked = {"options": request.options, "dataset": request.dataset, "noise": request.noise}
    return config_hash(asked | {"metric": request.metrics[0], "data": inputs.hashes(), "library": request.library})
