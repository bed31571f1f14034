"""The facts that must come with an accuracy under privacy: n, δ, unit, adjacency, accountant, test records, seeds."""

from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter

from dpstudy.core.files import read_json
from dpstudy.evaluation.summary import cell_name
from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.grouping import by_key
from dpstudy.tables.names import private_tests
from dpstudy.tables.results import Results
from dpstudy.tables.selecting import AXES
from dpstudy.tables.words import ADJACENCIES

_UNITS = {"record": "record", "subject": "person"}


def facts_of(cells: Iterable[str], results: Results) -> tuple[str, ...]:
    """A sentence of facts for each data set of these cells, given by name."""
    seeds: dict[str, set[int]] = {name: set() for name in cells}
    for row in results.summary:
        seeds.get(cell_name(*(row[axis] for axis in AXES)), set()).add(row["seed"])
    counted = [(name.partition("/")[0], name, len(cell_seeds)) for name, cell_seeds in seeds.items() if cell_seeds]
    return facts(counted, results, private_tests((dataset for dataset, *_ in counted), results.axes))


def facts(cells: Iterable[tuple[str, str, int]], results: Results, private: Collection[str]) -> tuple[str, ...]:
    """A sentence of facts for each data set.

    Args:
        cells: (data set, cell, seeds) of those that a table prints.
        results: with their ledgers, and the manifests of the data sets' test splits.
        private: the data sets whose test records are private: how many they are is a statistic of them.
    """
    by_dataset = by_key(cells, itemgetter(0))
    return tuple(_sentence(name, of_dataset, results, name in private) for name, of_dataset in by_dataset.items())


def _sentence(dataset: str, found: Sequence[tuple[str, str, int]], results: Results, private: bool) -> str:
    ledgers, counts = [results.ledger(cell) for _, cell, _ in found], [seeds for _, _, seeds in found]
    unit = _UNITS[ledgers[0]["unit"]]
    parts = [
        f"{dataset}: n = {_range(ledger['n'] for ledger in ledgers)} {unit}s to learn from",
        _guarantee([ledger for ledger in ledgers if ledger["epsilon"] is not None], unit),
        *_tested(dataset, [cell for _, cell, _ in found], results, private),
        f"{_range(counts)} {'seed' if set(counts) == {1} else 'seeds'}",
    ]
    return f"{'; '.join(parts)}."


def _guarantee(private: Sequence[dict], unit: str) -> str:
    if not private:
        return "no ε is claimed"
    delta = _listed(upper_bound(ledger["delta"]) for ledger in private)
    kinds = _listed(ADJACENCIES[ledger["adjacency"]].format(unit=unit) for ledger in private)
    return f"ε at δ = {delta} is about {kinds} (accountant: {_listed(ledger['accountant'] for ledger in private)})"


def _tested(dataset: str, cells: Iterable[str], results: Results, private: bool) -> list[str]:
    """How many were scored, as cells say; as the split has, where an earlier version scored them."""
    path = results.splits.get(dataset, {}).get("test")
    manifest = read_json(path) if path else {}
    scored = {tested["records"] for cell in cells if (tested := results.tested(cell))}
    if not scored and not manifest:
        return []
    scored = scored or {manifest["rows"]}
    known = manifest.get("subjects") and scored == {manifest["rows"]}  # how many of these are left out is not known
    persons = f" of {manifest['subjects']:,} persons" if known else ""
    counted = " (a count of private records, which no ledger accounts for)" if private else ""
    return [f"{_range(scored)} test records{persons}{counted}"]


def _range(numbers: Iterable[int]) -> str:
    least, *more = sorted(set(numbers))
    return f"{least:,}" + (f" to {more[-1]:,}" if more else "")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))
