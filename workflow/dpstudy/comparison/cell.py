"""Differences between two runs of one cell."""

from collections import Counter
from collections.abc import Iterator

from dpstudy.comparison.change import LEDGER, MADE_BY, SETTING, Change, changes, flatten
from dpstudy.comparison.means import mean_changes
from dpstudy.comparison.tree import Cell

_NO_SETTING = ("seeds", "mean", "median", "std", "made_by", "files")  # means are compared by their seeds
_NO_TERM = ("events", "not_accounted", "cell", "files")  # the first two by themselves; the others name what is compared
_OF_SEEDS = {"seeds": "seed", "split": "split"}


def cell_changes(a: Cell, b: Cell) -> Iterator[Change]:
    """The changes in what made a cell, its settings and seeds, its ledger, and its metrics; run times are ignored.

    Raises:
        StudyError: a number in a document is none.
    """
    for part, content in ((MADE_BY, _made_by), (SETTING, _settings), (LEDGER, _ledger)):
        yield from changes(a.name, part, content(a), content(b))
    yield from _sentences(a.name, a.ledger["not_accounted"], b.ledger["not_accounted"])
    yield from mean_changes(a.name, a.metrics["seeds"], b.metrics["seeds"], (a.path, b.path))


def _made_by(cell: Cell) -> dict[str, object]:
    return flatten(cell.metrics["made_by"], cell.path)


def _settings(cell: Cell) -> dict[str, object]:
    rows = cell.metrics["seeds"]
    settings = {name: " ".join(dict.fromkeys(str(row.get(key)) for row in rows)) for name, key in _OF_SEEDS.items()}
    if tested := dict.fromkeys(_tested(row["tested"]) for row in rows if "tested" in row):
        settings["test records"] = ", ".join(tested)
    return settings | flatten({key: value for key, value in cell.metrics.items() if key not in _NO_SETTING}, cell.path)


def _tested(told: object) -> str:
    """How many test records, and the beginning of the hash of their names."""
    return f"{told.get('records')} ({str(told.get('names'))[:8]})" if isinstance(told, dict) else str(told)


def _ledger(cell: Cell) -> dict[str, object]:
    """Events go by their names: one more in the list does not make the others differ."""
    path = cell.path.replace("metrics.json", "ledger.json")
    terms = flatten({key: value for key, value in cell.ledger.items() if key not in _NO_TERM}, path, "ledger")
    seen: Counter = Counter()
    for event in cell.ledger["events"]:
        name = str(event.get("name")) if isinstance(event, dict) else ""
        seen[name] += 1
        number = f" ({seen[name]})" if seen[name] > 1 else ""
        terms |= flatten(event, path, f"ledger.events.{name}{number}")
    return terms


def _sentences(place: str, a: list, b: list) -> Iterator[Change]:
    name = "ledger.not_accounted"
    yield from (Change(place, LEDGER, name, str(sentence), None) for sentence in a if sentence not in b)
    yield from (Change(place, LEDGER, name, None, str(sentence)) for sentence in b if sentence not in a)
