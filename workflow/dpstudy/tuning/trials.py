"""The table of a search's trials, and the best of them."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpstudy.config.space import Value, as_cell, from_cell
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table, write_table

COMPLETE, FAILED = "complete", "failed"


@dataclass(frozen=True)
class Trial:
    """One setting that was tried.

    Attributes:
        hyperparameters: what was tried.
        value: the metric on the validation split; 0 where it failed.
        seconds: how long it took.
        failure: why it failed, or None.
    """

    hyperparameters: dict[str, Value]
    value: float
    seconds: float
    failure: str | None = None

    def __str__(self) -> str:
        """
        >>> str(Trial({"learning_rate": 0.5, "epochs": 15}, 97.0612, 18.385))
        '97.06 with learning_rate 0.5, epochs 15 (18.4 s)'
        >>> str(Trial({"steps": 9}, 0.0, 0.12, "diverged"))
        'failed (diverged) with steps 9 (0.1 s)'
        """
        came = f"failed ({self.failure})" if self.failure else f"{self.value:.4g}"
        tried = ", ".join(
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.hyperparameters.items()
        )
        return f"{came} with {tried} ({self.seconds:.1f} s)"


@dataclass(frozen=True)
class Choice:
    """The result of a search.

    Attributes:
        hyperparameters: those of the best trial; of equal ones, the first.
        value: its metric on the validation split.
        trials, failed: how many there were, and how many of them failed.
        at_end: the hyper-parameters of `hyperparameters` that are at an end of their space: better may lie beyond.
    """

    hyperparameters: dict[str, Value]
    value: float
    trials: int
    failed: int
    at_end: tuple[str, ...] = ()

    @property
    def summary(self) -> dict[str, Any]:
        """The entry of metrics.json on a search."""
        beyond = {"at_end": list(self.at_end)} if self.at_end else {}
        return {"trials": self.trials, "failed": self.failed, "value": self.value} | beyond


def write_trials(path: str | os.PathLike, trials: Sequence[Trial], space: Mapping[str, Mapping]) -> None:
    """Write the table of trials: one column per hyper-parameter, value, seconds, state; for the owner only."""
    import pyarrow as pa

    columns = {"trial": pa.array(range(len(trials)), pa.int64())}
    for name, axis in space.items():
        columns[name] = pa.array([as_cell(axis, trial.hyperparameters[name]) for trial in trials])
    columns["value"] = pa.array([trial.value for trial in trials], pa.float64())
    columns["seconds"] = pa.array([trial.seconds for trial in trials], pa.float64())
    columns["state"] = pa.array([FAILED if trial.failure else COMPLETE for trial in trials])
    write_table(path, pa.table(columns), private=True)


def best_trial(path: str | os.PathLike, space: Mapping[str, Mapping]) -> Choice:
    """The best trial that did not fail.

    Raises:
        StudyError: the file is missing, damaged, or of another search.
    """
    try:
        rows = read_table(path).to_pylist()
        complete = [row for row in rows if row["state"] == COMPLETE]
        best = max(complete, key=lambda row: row["value"])  # of equal ones, the first
        chosen = {name: from_cell(axis, best[name]) for name, axis in space.items()}
    except (KeyError, ValueError):
        raise StudyError(f"{path}: not the trials of this search; delete it and run the study again") from None
    at_end = tuple(name for name, axis in space.items() if is_at_end(axis, chosen[name]))
    return Choice(chosen, best["value"], len(rows), len(rows) - len(complete), at_end)


def is_at_end(axis: Mapping, value: Value) -> bool:
    """Whether a number is the first or last of three or more choices, or within a twentieth of the end of a range.

    >>> choices = {"choices": [0.5, 1.0, 2.0]}
    >>> is_at_end(choices, 2.0), is_at_end(choices, 1.0), is_at_end({"choices": [1.0, 2.0]}, 2.0)
    (True, False, False)
    >>> is_at_end({"low": 1e-4, "high": 1.0, "log": True}, 0.9), is_at_end({"low": 0, "high": 1, "log": False}, 0.9)
    (True, False)
    """
    if isinstance(value, bool | str):
        return False
    if "choices" in axis:
        numbers = [one for one in axis["choices"] if not isinstance(one, bool | str)]
        return len(numbers) > 2 and value in (min(numbers), max(numbers))
    scale = math.log if axis["log"] else float
    share = (scale(value) - scale(axis["low"])) / (scale(axis["high"]) - scale(axis["low"]))
    return min(share, 1 - share) < 0.05
