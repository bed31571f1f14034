"""The history of a search: deterministic suggestions, and a journal that survives a kill.

Each suggestion comes from a fresh sampler of Optuna, seeded by the trial's number, that is shown the finished trials
(TPE, Bergstra et al. 2011, learns from them; the others look at none). A finished trial is one line of the journal; one
that a kill cut short leaves nothing, and is suggested again as it was.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
from optuna.storages.journal import JournalFileBackend, JournalStorage

from dpstudy.config.space import Value, bounds, grid
from dpstudy.core.errors import StudyError
from dpstudy.tuning.trials import Trial

_NAME = "search"


class History:
    """The trials of one search, on disk and as the sampler sees them.

    Args:
        path: of the journal, readable by its owner alone; made where it is missing.
        space: what is searched.
        seed: of the sequence of suggestions.
        sampler: "tpe", "random" or "grid".

    Raises:
        StudyError: the journal is damaged.
    """

    def __init__(self, path: str | os.PathLike, space: Mapping[str, Mapping], seed: int, sampler: str = "tpe"):
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._seed = seed
        self._sampler = sampler
        self._grid = grid(space) if sampler == "grid" else []
        self._distributions = {name: _distribution(space[name]) for name in sorted(space)}
        _drop_half_a_line(Path(path))
        try:
            # One job alone writes a journal: the lock of one that was killed would stop the next for half a minute.
            no_lock: Any = SimpleNamespace(acquire=lambda: True, release=lambda: None)
            file = JournalFileBackend(str(path), lock_obj=no_lock)
            storage = JournalStorage(file)
            self._journal = optuna.create_study(
                storage=storage, study_name=_NAME, direction="maximize", load_if_exists=True
            )
            finished = self._journal.get_trials()
        except (ValueError, KeyError):
            raise StudyError(f"{path}: damaged; delete it and run the study again") from None
        self._seen = optuna.create_study(direction="maximize")
        self._seen.add_trials(finished)
        self.trials = [_trial(trial) for trial in finished]

    def suggest(self) -> dict[str, Value]:
        """The next setting to try."""
        key = f"{self._seed}/{len(self.trials)}"
        seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")
        kind = optuna.samplers.RandomSampler if self._sampler == "random" else optuna.samplers.TPESampler
        self._seen.sampler = kind(seed=seed)
        if self._grid:
            self._seen.enqueue_trial(self._grid[len(self.trials)])
        return self._seen.ask(self._distributions).params

    def add(self, trial: Trial) -> None:
        """Record the outcome of the last suggestion."""
        tried, facts = trial.hyperparameters, {"seconds": trial.seconds, "failure": trial.failure}
        made = optuna.trial.create_trial(
            params=tried, distributions=self._distributions, value=trial.value, user_attrs=facts
        )
        self._journal.add_trial(made)
        self._seen.tell(len(self.trials), trial.value)
        self.trials.append(trial)


def _drop_half_a_line(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def _distribution(axis: Mapping) -> optuna.distributions.BaseDistribution:
    if "choices" in axis:
        return optuna.distributions.CategoricalDistribution(axis["choices"])
    low, high = bounds(axis)
    if axis["integer"]:
        return optuna.distributions.IntDistribution(int(low), int(high), log=axis["log"])
    return optuna.distributions.FloatDistribution(low, high, log=axis["log"])


def _trial(found: optuna.trial.FrozenTrial) -> Trial:
    if found.value is None:
        raise StudyError(f"trial {found.number} of the search has no score; delete the search and run the study again")
    return Trial(dict(found.params), found.value, found.user_attrs["seconds"], found.user_attrs["failure"])
