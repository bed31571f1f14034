"""Models that secure noise has paid for: neither overwritten in silence nor paid for again.

This is looked at before the first job of a run: Snakemake removes what a job shall make before the job itself could
object, and a model that is gone was paid for in vain.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpstudy.errors import StudyError
from dpstudy.files import read_json
from dpstudy.privacy.spending import Spending

OVERWRITTEN = (
    "cell {}: its model was trained with secure noise, and this run would train another in its place; what it spent "
    "would be lost. Copy it elsewhere, or undo what was changed; else write release: {{spend_again: true}}"
)


@dataclass(frozen=True)
class Due:
    """A training that a run is about to start.

    Attributes:
        cell: its path among cells.
        seeds: that it trains.
        ledger: the file that it would write.
    """

    cell: str
    seeds: Sequence[int]
    ledger: str


def guard(due: Iterable[Due], book: Spending, secure: bool) -> None:
    """Refuse a run that would overwrite such a model, or train it again.

    Args:
        due: all trainings of the run.
        book: what was spent; one that allows to spend again allows this too.
        secure: the run draws secure noise.

    Raises:
        StudyError: names the cell, and how many more there are.
    """
    refusals = [sentence for training in due if not book.again and (sentence := _refusal(training, book, secure))]
    if refusals:
        more = f" ({len(refusals) - 1} more cells likewise)" if len(refusals) > 1 else ""
        raise StudyError(f"nothing was run: {refusals[0]}{more}")


def _refusal(training: Due, book: Spending, secure: bool) -> str | None:
    if secure:
        try:
            book.check(training.cell, training.seeds)
        except StudyError as error:
            return str(error)
    path = Path(training.ledger)
    if path.exists() and (ledger := read_json(path)).get("noise") == "secure" and ledger.get("events"):
        return OVERWRITTEN.format(training.cell)
    return None
