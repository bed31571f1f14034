"""The epsilon of each cell under add/remove, zero-out and replace-one adjacency, side by side."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.summary import cell_name
from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.grouping import grouped
from dpstudy.tables.keys import row_schema
from dpstudy.tables.names import datasets_of
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import Printed, TableStyle

_PLACE = ("dataset", "features", "entry", "epsilon", "delta")
_NOTES = (
    "Each ε is an upper bound at the data set's δ. Zeroing out: the unit's place stays, its contribution becomes zero; "
    "of batches that are cut to a size this is bounded as replacing. "
    "Replacing is certified as removing and adding: exactly for Gaussian releases of full batches, as a bound else.",
    "–: nothing is proved, or there is no such bound (of fixed batches none for adding and removing).",
)


@dataclass(frozen=True)
class Line:
    """One cell and its epsilon under each adjacency; None where there is no bound."""

    place: tuple[str, str, str, str]
    delta: float
    epsilons: Mapping[str, float | None]


def _table(name: str, spec: dict, results: Results) -> Printed:
    lines = lay_adjacencies(name, spec, results)
    rows = ((*one.place, one.delta, *one.epsilons.values()) for one in lines)
    return Printed((*_PLACE, *lines[0].epsilons), rows, (_sheet(name, spec, lines),))


def lay_adjacencies(name: str, spec: dict, results: Results) -> list[Line]:
    """The lines of a table, in config order: cells at finite epsilons, of its rows (features and entry) or all.

    Raises:
        StudyError: a data set that the study does not have, or no cell.
    """
    from dpstudy.privacy.adjacency import epsilons_by_adjacency

    axes = results.axes
    epsilons = spec.get("epsilons", [epsilon for epsilon in axes["epsilons"] if epsilon != "inf"])
    rows = spec.get("rows") or [{"features": f, "entry": e} for f in axes["features"] for e in axes["entries"]]
    lines = []
    for dataset, row, epsilon in itertools.product(datasets_of(name, spec, axes), rows, epsilons):
        place = (dataset, row["features"], row["entry"], epsilon)
        if cell_name(*place) in results.ledgers:
            ledger = results.ledger(cell_name(*place))
            lines.append(Line(place, ledger["delta"], epsilons_by_adjacency(ledger)))
    if not lines:
        raise StudyError(f"table {name}: the study has no cell of its rows and epsilons")
    return lines


def _sheet(name: str, spec: dict, lines: list[Line]) -> Sheet:
    blocks = tuple(tuple(map(_texts, block)) for block in grouped(lines, lambda line: line.place[0]))
    header = ("Data set", "Cell", "Target ε", *(f"ε, {adjacency}" for adjacency in lines[0].epsilons))
    return Sheet(name, spec.get("caption", ""), header, "llr" + "r" * len(lines[0].epsilons), blocks, _NOTES)


def _texts(line: Line) -> tuple[str, ...]:
    dataset, features, entry, epsilon = line.place
    bounds = ("–" if one is None else upper_bound(one) for one in line.epsilons.values())
    return dataset, f"{entry}, {features}", epsilon, *bounds


STYLE = TableStyle(keys={"rows": row_schema("features", "entry")}, table=_table, measures=False)
