"""The file `workflow/published/measured.csv`: a line for each metric of each recorded cell."""

import os
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields, replace

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evidence.lines import damaged, read_lines
from dpstudy.provenance.code import WORKFLOW

MEASURED = WORKFLOW / "published" / "measured.csv"
FULL, REDUCED, STAND_IN = "full", "reduced", "stand-in"
KINDS = (FULL, REDUCED, STAND_IN)
_NUMBERS = ("seeds", "mean", "std", "low", "high", "n")


@dataclass(frozen=True)
class Measured:
    """One recorded number.

    Attributes:
        study: of which config; with the next four and `metric` the key of a line.
        dataset, features, entry, epsilon: the cell; epsilon as in the config.
        metric: its name; its values are those of the test split, in percent where the metric is a share.
        mean, std, seeds: over seeds; the standard deviation of a sample, 0 for a single seed.
        low, high: of the 95 % interval over seeds and test records together; None where there is none.
        certified: the certified epsilon, rounded up; "" where nothing is guaranteed.
        attacked: the largest lower bound on epsilon of attacks on the cell, at their confidence (99.9 % unless its
            study says otherwise), rounded down; "" where none was tried.
        delta, n, unit, guarantee, noise: as in the ledger.
        kind, what: full; reduced, and what is smaller than the paper's; stand-in, and for what.
        date: when the cell was made.
        commit: the commit of its code, where the recording clone has that code; "" otherwise.
        library: the hash of its code.
        machine: what it ran on.
    """

    study: str
    dataset: str
    features: str
    entry: str
    epsilon: str
    metric: str
    mean: float
    std: float
    seeds: int
    low: float | None
    high: float | None
    certified: str
    attacked: str
    delta: str
    n: int
    unit: str
    guarantee: str
    noise: str
    kind: str
    what: str
    date: str
    commit: str
    library: str
    machine: str

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a line; a new recording replaces the line with the same key."""
        return self.study, self.dataset, self.features, self.entry, self.epsilon, self.metric


COLUMNS = tuple(field.name for field in fields(Measured))


def read(path: str | os.PathLike = MEASURED) -> list[Measured]:
    """The recorded lines; none where there is no file.

    Raises:
        StudyError: a line is damaged, or two have one key.
    """
    by_key: dict[tuple, Measured] = {}
    for number, line in read_lines(path, COLUMNS):
        try:
            row = _row(line)
        except ValueError as error:
            raise damaged(path, number, error) from None
        if row.key in by_key:
            raise StudyError(f"{path}: line {number}: {'/'.join(row.key)} stands twice; remove one")
        by_key[row.key] = row
    return list(by_key.values())


def merged(old: Iterable[Measured], new: Iterable[Measured]) -> list[Measured]:
    """The old and new lines in order of their studies' names; a new line replaces an old one with the same key.

    Of a cell recorded again, whose code the recording clone no longer has, the commit is still known.
    """
    rows = {row.key: row for row in old}
    for row in new:
        before = rows.get(row.key, row)
        known = before.commit if before.library == row.library else ""
        rows[row.key] = replace(row, commit=row.commit or known)
    return sorted(rows.values(), key=lambda row: row.study)  # stable: the cells keep the order of their study


def write(rows: Iterable[Measured], path: str | os.PathLike = MEASURED) -> None:
    """Write the file.

    Raises:
        StudyError: it cannot be written.
    """
    write_csv(path, COLUMNS, map(_texts, rows))


def _texts(row: Measured) -> list[str]:
    values = ("" if value is None else value for value in astuple(row))
    return [f"{value:.4f}" if isinstance(value, float) else str(value) for value in values]


def _row(line: dict) -> Measured:
    values: dict = dict(line)
    for name in _NUMBERS:
        number = int if name in ("seeds", "n") else float
        values[name] = number(line[name]) if line[name] or name not in ("low", "high") else None
    if values["kind"] not in KINDS or bool(values["what"]) == (values["kind"] == FULL):
        raise ValueError("kind is not full, or reduced or stand-in with what is so")
    return Measured(**values)
